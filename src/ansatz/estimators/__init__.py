"""The scikit-learn estimators, and the one-line fit."""

from ansatz.estimators.classifier import Classifier as Classifier
from ansatz.estimators.forecaster import Forecaster as Forecaster
from ansatz.fitting.result import Fit as Fit
from ansatz.fitting.fit import fit as fit
from ansatz.estimators.knowledge_graph import KnowledgeGraph as KnowledgeGraph
from ansatz.estimators.potential import Potential as Potential
from ansatz.estimators.language_model import LanguageModel as LanguageModel
from ansatz.estimators.ranker import Ranker as Ranker
from ansatz.estimators.regressor import Regressor as Regressor
from ansatz.fitting.saved import load as load
from ansatz.fitting.saved import save as save
from ansatz.estimators.segmenter import Segmenter as Segmenter
from ansatz.estimators.survival import SurvivalRegressor as SurvivalRegressor
from ansatz.estimators.synthesizer import Synthesizer as Synthesizer
from ansatz.estimators.tagger import Tagger as Tagger
from ansatz.estimators.translator import Translator as Translator
from ansatz.estimators.span_finder import SpanFinder as SpanFinder
