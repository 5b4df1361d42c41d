"""What ``ansatz.json`` holds: everything about a saved model that is not a tensor."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from ansatz.fitting.summaries import SavedSummary


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=False)


class LawRecord(_Strict):
    """A likelihood by name and options.

    Example:
        >>> from ansatz.fitting.specification import LawRecord
        >>> LawRecord(name="normal", options={}).name
        'normal'
    """

    name: str
    options: dict[str, Any]


class NetworkRecord(_Strict):
    """A network by name and options; options of None mean one of the user's own.

    Example:
        >>> from ansatz.fitting.specification import NetworkRecord
        >>> NetworkRecord(name="mlp", options={}, outputs=2).outputs
        2
    """

    name: str
    options: dict[str, Any] | None
    outputs: int


class TargetRecord(_Strict):
    """What the outcomes are called, and for classes which there are.

    Example:
        >>> from ansatz.fitting.specification import TargetRecord
        >>> TargetRecord(names=["y"], shape=[], is_column=False).classes is None
        True
    """

    names: list[str]
    shape: list[int]
    is_column: bool
    classes: list[Any] | None = None
    class_kind: Literal["b", "i", "u", "f", "U", "O"] | None = None
    log_weights: list[float] | None = None
    temperature: float = 1.0
    has_offset: bool = False


class HistoryRecord(_Strict):
    """How the training went; the fields of :class:`ansatz.training.History`.

    Example:
        >>> from ansatz.fitting.specification import HistoryRecord
        >>> HistoryRecord(steps=3).epochs
        0
    """

    records: list[dict[str, float | int | bool | None]] = []
    best_step: int | None = None
    best_loss: float | None = None
    stop_reason: str | None = None
    steps: int = 0
    epochs: int = 0
    seconds: float = 0.0
    notes: list[str] = []


class LinearRecord(_Strict):
    """The linear model among the members of an ensemble.

    Example:
        >>> from ansatz.fitting.specification import LinearRecord
        >>> LinearRecord(preprocessing={}, law={"name": "normal", "options": {}}, outputs=1).outputs
        1
    """

    preprocessing: dict[str, Any]
    law: LawRecord
    outputs: int


class EnsembleRecord(_Strict):
    """How the members of an ensemble are put together.

    Example:
        >>> from ansatz.fitting.specification import EnsembleRecord
        >>> EnsembleRecord(members=2, weights=[0.5, 0.5]).factor
        1.0
    """

    members: int
    weights: list[float]
    factor: float = 1.0
    recalibration: dict[str, Any] | None = None
    linear: LinearRecord | None = None


class Specification(_Strict):
    """``ansatz.json``: everything about a saved model that is not a tensor.

    Example:
        >>> from ansatz.fitting.specification import Specification
        >>> "likelihood" in Specification.model_fields
        True
    """

    estimator: Literal["Regressor", "Classifier", "SurvivalRegressor", "Ranker", "Segmenter"]
    structure: Literal["vector", "grid"] = "vector"
    parameters: dict[str, Any]
    likelihood: LawRecord
    network: NetworkRecord
    target: TargetRecord
    uses: dict[str, Any] | None
    features: list[str] | None
    feature_count: int
    columns: list[dict[str, Any]] | None
    preprocessing: dict[str, Any]
    recipe: dict[str, Any] | None
    history: HistoryRecord | None
    summary: SavedSummary | None
    evidence: dict[str, Any]
    iterations: int
    ensemble: EnsembleRecord | None = None
