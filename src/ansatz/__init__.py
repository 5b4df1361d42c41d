"""Deep learning as statistics: say what x is, what y is, and how sure you need to be.

Example:
    >>> import ansatz
    >>> ansatz.likelihoods.create("poisson").name
    'poisson'
"""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:
    from ansatz.estimators.classifier import Classifier as Classifier
    from ansatz.estimators.forecaster import Forecaster as Forecaster
    from ansatz.fitting.result import Fit as Fit
    from ansatz.fitting.fit import fit as fit
    from ansatz.estimators.knowledge_graph import KnowledgeGraph as KnowledgeGraph
    from ansatz.estimators.potential import Potential as Potential
    from ansatz.estimators.ranker import Ranker as Ranker
    from ansatz.estimators.regressor import Regressor as Regressor
    from ansatz.fitting.saved import load as load
    from ansatz.estimators.segmenter import Segmenter as Segmenter
    from ansatz.estimators.span_finder import SpanFinder as SpanFinder
    from ansatz.estimators.synthesizer import Synthesizer as Synthesizer
    from ansatz.estimators.tagger import Tagger as Tagger
    from ansatz.estimators.survival import SurvivalRegressor as SurvivalRegressor
    from ansatz.estimators.translator import Translator as Translator
    from ansatz.onnx.export import export as export
    from ansatz.report.compare import compare as compare
    from ansatz.symmetry.certificate import certify as certify
    from ansatz.tuning.tune import tune as tune

# Imported when first asked for, so that `import ansatz` and `ansatz --help` are instant.
_NAMES = (
    *("Classifier", "Fit", "Forecaster", "KnowledgeGraph", "LanguageModel"),
    *("Ranker", "Regressor", "Segmenter"),
    *("SpanFinder", "SurvivalRegressor", "Synthesizer", "Tagger", "Translator"),
    *("Potential", "Ranker", "Regressor", "Segmenter"),
    *("SpanFinder", "SurvivalRegressor", "Tagger", "Translator"),
    *("fit", "load"),
)
_ELSEWHERE = {
    "certify": "symmetry",
    "compare": "report.compare",
    "export": "onnx",
    "tune": "tuning",
}
_MODULES = (
    "attribution",
    "claims",
    "connectionism",
    "data",
    "diagnostics",
    "errors",
    "estimators",
    "figures",
    "fitting",
    "generative",
    "inference",
    "layers",
    "likelihoods",
    "linear",
    "metrics",
    "networks",
    "onnx",
    "optim",
    "report",
    "seeds",
    "spec",
    "structures",
    "symmetry",
    "theory",
    "training",
    "tuning",
)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"ansatz.{name}")
    if name in _NAMES or name in _ELSEWHERE:
        home = _ELSEWHERE.get(name, "estimators")
        value = getattr(importlib.import_module(f"ansatz.{home}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'ansatz' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted((*_NAMES, *_ELSEWHERE, *_MODULES, "__version__"))
