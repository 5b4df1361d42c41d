"""The content of ``ansatz.json``: everything about a saved model that is not a tensor."""

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ansatz.data import Column
from ansatz.fitting.column_roles import ColumnRoles
from ansatz.fitting.recalibration import Kind
from ansatz.fitting.summaries import SavedSummary

_MOST = 2**31 - 1  # of anything that is counted


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=False)


class LikelihoodRecord(_Strict):
    """A likelihood by name and options."""

    name: str
    options: dict[str, Any]


class NetworkRecord(_Strict):
    """A network by name and options; options of None mean one of the user's own."""

    name: str
    options: dict[str, Any] | None
    outputs: int = Field(ge=0, le=_MOST)


class MemberRecord(_Strict):
    """A member of an axis by name, with what it learned as JSON."""

    name: str
    state: dict[str, Any] = {}


class FeatureRecord(_Strict):
    """The names of the features, as :meth:`Rows.describe` gives them."""

    names: list[str] | None
    count: int = Field(ge=0, le=_MOST)
    columns: list[Column] | None
    parts: "dict[str, FeatureRecord] | None" = None  # of examples of several kinds

    @model_validator(mode="after")
    def _agree(self) -> Self:
        columns = None if self.columns is None else [column.name for column in self.columns]
        for what, names in (("names", self.names), ("columns", columns)):
            if names is not None and len(set(names)) < len(names):
                raise ValueError(f"two of its {what} are the same")
        if self.names is not None and len(self.names) != self.count:
            raise ValueError(f"{len(self.names)} names for {self.count} features")
        return self


class RecalibrationRecord(_Strict):
    """The factor of a recalibrated predictive; the fields of :class:`Recalibration`."""

    kind: Kind
    value: float = Field(gt=0, le=1e6, allow_inf_nan=False)
    before: dict[str, float]
    after: dict[str, float]


class HistoryRecord(_Strict):
    """The history of the training; the fields of :class:`ansatz.training.History`."""

    records: list[dict[str, float | int | bool | None]] = []
    best_step: int | None = None
    best_loss: float | None = None
    stop_reason: str | None = None
    steps: int = 0
    epochs: int = 0
    seconds: float = 0.0
    notes: list[str] = []


class Specification(_Strict):
    """``ansatz.json``: everything about a saved model that is not a tensor."""

    structure: str
    outcome: MemberRecord
    inference: MemberRecord
    parameters: dict[str, Any]
    likelihood: LikelihoodRecord
    network: NetworkRecord | None
    column_roles: ColumnRoles | None
    features: FeatureRecord
    preprocessing: dict[str, Any]
    has_offset: bool = False
    recipe: dict[str, Any] | None
    history: HistoryRecord | None
    recalibration: RecalibrationRecord | None = None
    summary: SavedSummary | None
    evidence: dict[str, dict[str, Any] | None]
    iterations: int = Field(ge=0, le=_MOST)

    @model_validator(mode="after")
    def _agree(self) -> Self:
        """Compares what several parts of the record say about the same columns."""
        names = self.features.names or []
        outcome = [] if self.column_roles is None else self.column_roles.outcome_columns
        shared = [name for name in outcome if name in names]
        if shared:
            raise ValueError(f"column '{shared[0]}' is both a feature and the outcome")
        design = self.preprocessing.get("design")
        if isinstance(design, dict):  # a formula: its variables are features, its columns are not
            used = [each.get("name") for each in design.get("variables", ())]
            if self.features.names is not None and not set(used) <= set(names):
                raise ValueError("a variable of the formula is not a feature")
            return self
        fit = self.evidence.get("fit") or {}
        for name in ("metrics", "linear", "constant"):
            if not isinstance(fit.get(name) or {}, dict):
                raise ValueError(f"evidence.fit.{name}: expected metrics by name")
        if not isinstance(fit.get("notes", []), list):
            raise ValueError("evidence.fit.notes: expected a list")
        read = self.preprocessing.get("columns")
        if self.features.columns is not None and isinstance(read, list):
            found = [each.get("name") if isinstance(each, dict) else each for each in read]
            if found != [column.name for column in self.features.columns]:
                raise ValueError("features and preprocessing name different columns")
        return self

    @classmethod
    def read(cls, record: Any) -> "Specification":
        """Validates a record of this format, or of formats 1 and 2 under their older names."""
        if isinstance(record, dict) and "estimator" in record:
            record = _of_format_1(record)
        if isinstance(record, dict) and "uses" in record:
            record = _of_format_2(record)
        return cls.model_validate(record)


_MEMBERS = "ensemble"  # the field of how members are put together
_OUTCOMES = {
    "Regressor": "number",
    "Classifier": "class",
    "SurvivalRegressor": "survival",
    "Ranker": "ranking",
    "Segmenter": "mask",
}


_TARGET = {"classes": None, "class_kind": None, "log_weights": None, "temperature": 1.0}


def _of_format_1(record: dict[str, Any]) -> dict[str, Any]:
    """Converts a record of format 1 to format 2."""
    old = dict(record)
    estimator, target = old.pop("estimator"), dict(old.pop("target"))
    if estimator not in _OUTCOMES:
        raise ValueError(f"unknown estimator '{str(estimator)[:40]}'")
    ensemble, shape = old.pop(_MEMBERS, None), old.get("preprocessing", {}).get("shape", ())
    old["has_offset"] = target.pop("has_offset", False)
    causes = old["likelihood"]["options"].get("causes", 1)
    target = {**_TARGET, **target, "axes": max(len(shape) - 1, 0), "causes": causes}
    old["outcome"] = {"name": _OUTCOMES[estimator], "state": target}
    settings = old.get("parameters", {})
    state = dict(ensemble or {})
    old["recalibration"] = state.pop("recalibration", None)
    old["inference"] = {"name": settings.get("inference", "point"), "state": state}
    if ensemble is None:  # a linear model is one weight vector, whatever was asked for
        old["inference"]["name"] = "point"
    old["features"] = {
        "names": old.pop("features"),
        "count": old.pop("feature_count"),
        "columns": old.pop("columns"),
    }
    return {"structure": "vector", **old}


_AUGMENTATIONS = {"turn": "rotate90", "erase": "random_erasing", "sometimes": "random_apply"}
_TENSORS = {"spread": "dispersion", "law": "likelihood"}


def _of_format_2(record: dict[str, Any]) -> dict[str, Any]:
    """Renames what format 2 called otherwise: column roles, provenance, wrapped likelihoods."""
    old = dict(record)
    old["column_roles"] = old.pop("uses")
    evidence = dict(old.get("evidence") or {})
    fit, provenance = evidence.get("fit"), evidence.pop("origin", None)
    if isinstance(fit, dict) and "candidates" in fit:
        evidence["fit"] = {**fit, "candidates": _renamed(fit["candidates"])}
    if isinstance(provenance, dict):
        provenance = {**provenance, "column_roles": provenance.get("uses", {})}
        provenance["likelihood_options"] = _renamed(provenance.get("law_options", {}))
        if "options" in provenance:  # as before requests
            provenance["options"] = _renamed_options(provenance["options"])
        for part in ("request", "reader"):
            asked = provenance.get(part)
            if isinstance(asked, dict):
                asked = {("tiles" if k == "pieces" else k): asked[k] for k in asked}
                if "options" in asked:
                    asked["options"] = _renamed_options(asked["options"])
                provenance[part] = asked
        evidence["provenance"] = {
            k: v for k, v in provenance.items() if k not in ("uses", "law_options")
        }
    old["evidence"] = evidence
    for part in ("likelihood", "inference", "recipe", "parameters"):
        old[part] = _renamed(old.get(part))
    return old


def _renamed(value: Any) -> Any:
    """A part of a record with the present names of options, at any depth."""
    if isinstance(value, list):
        return [_renamed(each) for each in value]
    if not isinstance(value, dict):
        return value
    found = {("likelihood" if k == "law" else k): _renamed(v) for k, v in value.items()}
    name = found.get("name")
    if isinstance(name, str) and name in {*_AUGMENTATIONS, "shift", "elastic"}:
        found = {("pixels" if k == "cells" else k): v for k, v in found.items()}
        found["name"] = _AUGMENTATIONS.get(name, name)
    if "spread" in found and name == "pca_color":
        found["scale"] = found.pop("spread")
    return found


def _renamed_options(options: Any) -> Any:
    """The options of ``--set`` with their present names; augmentations may be a text."""
    if not isinstance(options, dict):
        return options
    found = {
        ("likelihood.likelihood" if k == "likelihood.law" else k): v
        for k, v in _renamed(options).items()
    }
    for key in ("augment", "training.augment", "grid.augment"):
        if isinstance(found.get(key), str):
            names = [name.strip() for name in found[key].split(",")]
            found[key] = ",".join(_AUGMENTATIONS.get(name, name) for name in names)
        elif isinstance(found.get(key), list):
            found[key] = [
                _AUGMENTATIONS.get(name, name) if isinstance(name, str) else name
                for name in found[key]
            ]
    return found


def present_name(tensor: str) -> str:
    """The name that this version gives to a likelihood's tensor of an older model."""
    before, objective, own = tensor.partition("objective.")
    if before.startswith("network.") or not objective:  # a network may have any names
        return tensor
    return before + objective + ".".join(_TENSORS.get(part, part) for part in own.split("."))
