"""An estimator on disk: a folder of JSON and tensors that no loader ever executes."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import ValidationError
from torch import Tensor, nn

from ansatz import likelihoods, networks
from ansatz.data import Column, Preprocessor
from ansatz.data.grids import GridPreprocessor
from ansatz.errors import AnsatzError, ModelError, UsageError
from ansatz.estimators.classifier import Classifier
from ansatz.inference.ensemble_model import EnsembleModel
from ansatz.structures.grid.model import GridModel
from ansatz.fitting.kinds import ESTIMATORS
from ansatz.estimators.ranker import Ranker
from ansatz.fitting.recipe import Recipe, one_line
from ansatz.fitting.recipe_options import plain_augment
from ansatz.inference.saved_ensemble import (
    describe_ensemble,
    ensemble_tensors,
    load_parts,
    member_tensors,
    rebuild_ensemble,
)
from ansatz.fitting.specification import (
    HistoryRecord,
    LawRecord,
    NetworkRecord,
    Specification,
    TargetRecord,
)
from ansatz.fitting.summaries import SavedSummary, summarize_linear
from ansatz.estimators.survival import SurvivalRegressor
from ansatz.outcomes.survival_metrics import Followed
from ansatz.estimators.table_estimator import TableEstimator
from ansatz.fitting.model import TableModel
from ansatz.fitting.uses import Uses
from ansatz.inference import Recalibration
from ansatz.likelihoods import Likelihood
from ansatz.spec import TargetSpec
from ansatz.storage import (
    encode_json,
    pack_state,
    read_json,
    read_tensors,
    unpack_state,
    verify_folder,
    write_folder,
)
from ansatz.training import History, Supervised

_ESTIMATORS = {kind.__name__: kind for kind in ESTIMATORS.values()}
_LABELS = {"b": np.bool_, "i": np.int64, "u": np.int64, "f": np.float64, "U": np.str_, "O": object}


def save(estimator: TableEstimator, folder: str | Path, *, overwrite: bool = False) -> Path:
    """Writes a fitted estimator as a folder, whole or not at all.

    Args:
        estimator: fitted.
        folder: its name; an existing one is refused unless ``overwrite``.
        overwrite: write the new one, then put it in the old one's place.

    Example:
        >>> import tempfile, pathlib
        >>> import numpy as np
        >>> from ansatz import Regressor, load
        >>> model = Regressor().fit(np.arange(20.0).reshape(-1, 1), np.arange(20.0))
        >>> with tempfile.TemporaryDirectory() as place:
        ...     folder = model.save(pathlib.Path(place) / "model")
        ...     bool(np.array_equal(load(folder).predict([[3.0]]), model.predict([[3.0]])))
        True
    """
    model = estimator.model_
    files: dict[str, Any] = {
        "ansatz.json": encode_json(_specify(estimator).model_dump(mode="json")),
        "weights.safetensors": (
            ensemble_tensors(model) if isinstance(model, EnsembleModel) else model.tensors()
        ),
    }
    followed = getattr(estimator, "followed_", None)
    if followed is not None:  # scores of censored rows need the training rows' censoring
        files["followed.safetensors"] = followed.tensors()
    scores = getattr(estimator, "conformal_scores_", None)
    if scores is not None:
        files["conformal.safetensors"] = {"scores": scores.contiguous()}
    keys = getattr(estimator, "row_keys_", None)
    if keys is not None:  # so that evaluate can tell copies of rows it learned from
        files["rows.safetensors"] = {"keys": torch.from_numpy(keys.view(np.int64))}
    state = getattr(estimator, "_optimizer_state", None)
    if state is not None:  # so that partial_fit goes on where it was
        packed, tensors = pack_state(state)
        files["optimizer.json"], files["optimizer.safetensors"] = encode_json(packed), tensors
    return write_folder(folder, files, kind="model", overwrite=overwrite)


def load(folder: str | Path, *, network: nn.Module | None = None) -> TableEstimator:
    """The estimator saved in ``folder``, verified by its sums first.

    Args:
        folder: what ``save`` or ``ansatz fit`` wrote.
        network: needed for a network that is not in the registry: a module of the same shape,
            whose weights are replaced.

    Example:
        >>> from ansatz import load
        >>> load("no-such-folder")
        Traceback (most recent call last):
        ...
        ansatz.errors.ModelError: ...
    """
    path = Path(folder)
    manifest = verify_folder(path, "model")
    try:
        record = Specification.model_validate(read_json(path / "ansatz.json"))
        estimator = _rebuild(record, path, network)
        if isinstance(estimator, SurvivalRegressor):
            estimator.followed_ = Followed.of_tensors(read_tensors(path / "followed.safetensors"))
            estimator._causes = getattr(estimator.model_.objective.likelihood, "causes", 1)
        if "conformal.safetensors" in manifest.files:
            estimator.conformal_scores_ = read_tensors(path / "conformal.safetensors")["scores"]
        if "rows.safetensors" in manifest.files:
            estimator.row_keys_ = _row_keys(path / "rows.safetensors")
        if "optimizer.json" in manifest.files:
            packed = read_json(path / "optimizer.json")
            tensors = read_tensors(path / "optimizer.safetensors")
            estimator._optimizer_state = unpack_state(packed, tensors)
    except ValidationError as error:
        raise ModelError(f"{path / 'ansatz.json'}: {one_line(error)}") from None
    except ModelError as error:
        if str(path) in str(error):
            raise
        raise ModelError(f"{path / 'ansatz.json'}: {error}") from None
    except (AnsatzError, ValueError, TypeError, KeyError, RuntimeError) as error:
        # A law, a network or a state that its own checks refuse.
        raise ModelError(f"{path / 'ansatz.json'}: {str(error).splitlines()[0]}") from None
    return estimator


def _specify(estimator: TableEstimator) -> Specification:
    model = estimator.model_
    law = model.objective.likelihood
    classes = getattr(estimator, estimator._labels, None)
    one = model.members[0] if isinstance(model, EnsembleModel) else model
    shift = one.objective.shift
    history = getattr(estimator, "history_", None)
    recipe = getattr(estimator, "recipe_", None)
    uses = getattr(estimator, "uses_", None)
    names = getattr(estimator, "feature_names_in_", None)
    if classes is not None and classes.dtype.kind not in _LABELS:
        raise UsageError(f"classes of type {classes.dtype} cannot be saved; make them text.")
    target = TargetRecord(
        names=estimator.target_names_,
        shape=list(getattr(estimator, "_target_shape", ())),
        is_column=getattr(estimator, "_y_is_column", False),
        classes=None if classes is None else classes.tolist(),
        class_kind=None if classes is None else classes.dtype.kind,
        log_weights=getattr(estimator, "_log_weights", None),
        temperature=getattr(estimator, "_temperature", 1.0),
        has_offset=getattr(estimator, "has_offset_", False),
    )
    outputs = shift.numel() if shift is not None else _outputs(one.network)
    return Specification(
        estimator=type(estimator).__name__,  # type: ignore[arg-type]
        structure="grid" if isinstance(one, GridModel) else "vector",
        parameters=_plain_parameters(estimator),
        likelihood=LawRecord(name=law.name, options=law.options),
        network=NetworkRecord(
            name=model.network_name, options=model.network_options, outputs=outputs
        ),
        target=target,
        uses=None if uses is None else uses.model_dump(),
        features=None if names is None else [str(name) for name in names],
        feature_count=int(estimator.n_features_in_),
        columns=_dump_columns(estimator.columns_),
        preprocessing=model.preprocessor.state(),
        recipe=None if recipe is None else recipe.model_dump(mode="json"),
        history=None if history is None else HistoryRecord(**history.state_dict()),
        summary=_summary(estimator),
        evidence=getattr(estimator, "evidence_", {}),
        iterations=int(estimator.n_iter_),
        ensemble=describe_ensemble(model, getattr(estimator, "recalibration_", None)),
    )


def _rebuild(record: Specification, path: Path, network: nn.Module | None) -> TableEstimator:
    kind = _ESTIMATORS[record.estimator]
    known = kind._get_param_names()
    unknown = [name for name in record.parameters if name not in known]
    if unknown:
        raise ModelError(f"{path / 'ansatz.json'}: unknown parameter '{unknown[0]}'.")
    estimator = kind(**_parameters(record, network))
    preprocessor = _preprocessor(record)
    tensors = read_tensors(path / "weights.safetensors")
    where = str(path / "weights.safetensors")
    _set_state(estimator, record)
    if record.ensemble is None:
        estimator.model_ = _member(record, preprocessor, tensors, network, where)
    else:
        members = [
            _member(record, preprocessor, own, network, where)
            for own in member_tensors(tensors, record.ensemble, where)
        ]
        estimator.model_ = rebuild_ensemble(record.ensemble, members, tensors, where)
        if record.ensemble.recalibration is not None:
            estimator.recalibration_ = Recalibration(**record.ensemble.recalibration)
    return estimator


def _preprocessor(record: Specification) -> Any:
    kind = GridPreprocessor if record.structure == "grid" else Preprocessor
    return kind.from_state(record.preprocessing)


def _member(
    record: Specification,
    preprocessor: Any,
    tensors: dict[str, Tensor],
    network: nn.Module | None,
    where: str,
) -> TableModel:
    """One network with its objective."""
    law = likelihoods.create(record.likelihood.name, **record.likelihood.options).double()
    shift, scale = tensors.get("objective.shift"), tensors.get("objective.scale")
    masks = record.estimator == "Segmenter"
    _check_outputs(record, law, shift, scale, masks=masks)
    objective = Supervised(law, shift, scale, axis=1 if masks else -1)
    _take_targets(law, tensors, record.target)
    module = _network(record, preprocessor, network)
    load_parts({"network": module, "objective": objective}, tensors, where)
    parts = preprocessor, module, objective, record.network.name, record.network.options
    if record.structure != "grid":
        return TableModel(*parts)
    return GridModel(*parts, symmetry=(record.recipe or {}).get("symmetry"))


def _parameters(record: Specification, network: nn.Module | None) -> dict[str, Any]:
    """The constructor's arguments; what JSON cannot say is made from the rest of the record."""
    given = dict(record.parameters)
    if "likelihood" not in given:
        given["likelihood"] = likelihoods.create(
            record.likelihood.name, **record.likelihood.options
        )
    if "network" not in given:
        given["network"] = network
    if isinstance(given.get("class_weight"), list):
        given["class_weight"] = {label: weight for label, weight in given["class_weight"]}
    return given


def _check_outputs(
    record: Specification,
    law: Likelihood,
    shift: Tensor | None,
    scale: Tensor | None,
    *,
    masks: bool = False,
) -> None:
    """The law's raw numbers, the network's outputs and the shift must be equally many."""
    shape = () if record.target.is_column else tuple(record.target.shape)
    classes = 0 if record.target.classes is None else len(record.target.classes)
    if masks:
        outputs = law.outputs(TargetSpec(classes=classes))
    elif law.event_ndim:
        outputs = law.outputs(TargetSpec(classes=classes, event=shape))
    else:
        outputs = law.outputs(TargetSpec(shape=shape, classes=classes)) * math.prod(shape)
    if (shift is None) != (scale is None):
        raise ModelError("shift and scale come together")
    sizes = [record.network.outputs, *(t.numel() for t in (shift, scale) if t is not None)]
    for size in sizes:
        if size != outputs:
            raise ModelError(f"{law.name} needs {outputs} raw numbers per row, not {size}")


def _take_targets(law: Likelihood, tensors: dict[str, Tensor], target: TargetRecord) -> None:
    """Units and spreads are one number per target, which a fresh law cannot know."""
    prefix, shape = "objective.likelihood.", (math.prod(target.shape),)
    own = {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}
    if law.event_ndim:  # as many numbers as a vector has
        law.load_state_dict(own, strict=False)
    elif target.shape and not target.is_column:
        law.load_state_dict({n: t for n, t in own.items() if t.shape == shape}, strict=False)


def _network(record: Specification, preprocessor: Any, network: nn.Module | None) -> nn.Module:
    dtype = torch.float32 if record.structure == "grid" else torch.float64
    if record.network.options is not None:
        created: nn.Module = networks.create(
            record.network.name,
            inputs=preprocessor.spec,
            outputs=record.network.outputs,
            generator=torch.Generator().manual_seed(0),
            **record.network.options,
        )
        return created.to(dtype)
    if network is None:
        raise UsageError(
            f"the network {record.network.name} is one of your own: pass one of the same shape, "
            "ansatz.load(folder, network=module)."
        )
    return network.to(dtype)


def _set_state(estimator: TableEstimator, record: Specification) -> None:
    target = record.target
    estimator.target_names_ = target.names
    estimator.has_offset_ = target.has_offset
    estimator.n_features_in_ = record.feature_count
    estimator.n_iter_ = record.iterations
    estimator.columns_ = (
        None if record.columns is None else [Column.model_validate(c) for c in record.columns]
    )
    estimator.evidence_ = record.evidence
    if record.features is not None:
        estimator.feature_names_in_ = np.array(record.features, dtype=object)
    if target.classes is not None and target.class_kind is not None:
        labels: NDArray[Any] = np.array(target.classes, dtype=_LABELS[target.class_kind])
        setattr(estimator, estimator._labels, labels)
    if isinstance(estimator, Classifier):
        estimator._log_weights = target.log_weights
        estimator._temperature = target.temperature
    else:
        estimator._target_shape = tuple(target.shape)
        estimator._y_is_column = target.is_column
    if record.uses is not None:
        estimator.uses_ = Uses.model_validate(record.uses)
    if record.recipe is not None:
        estimator.recipe_ = Recipe.model_validate(record.recipe)
    if record.history is not None:
        estimator.history_ = History.from_state(record.history.model_dump())
    if record.summary is not None:
        estimator.saved_summary_ = record.summary


def _row_keys(path: Path) -> NDArray[np.uint64]:
    keys = read_tensors(path).get("keys")
    if keys is None or keys.dtype != torch.int64 or keys.ndim != 1:
        raise ModelError(f"{path}: expected one tensor 'keys' of 64-bit integers.")
    return keys.numpy().view(np.uint64)


def _summary(estimator: TableEstimator) -> SavedSummary | None:
    if isinstance(estimator, Ranker) and not estimator.n_features_in_:
        return SavedSummary.of(estimator.summary())
    if hasattr(estimator, "linear_"):
        return SavedSummary.of(summarize_linear(estimator))
    return getattr(estimator, "saved_summary_", None)


def _outputs(network: nn.Module) -> int:
    *_, last = (m for m in network.modules() if isinstance(m, nn.Linear))
    return int(last.out_features)


def _plain_parameters(estimator: TableEstimator) -> dict[str, Any]:
    """The constructor's arguments that JSON can say; objects are recorded elsewhere."""
    plain: dict[str, Any] = {}
    for name, value in estimator.get_params(deep=False).items():
        if isinstance(value, (nn.Module, np.random.RandomState)):
            continue
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, np.ndarray):
            value = value.tolist()
        if isinstance(value, tuple):
            value = list(value)
        if name == "augment":
            value = plain_augment(value)
        if name == "class_weight" and isinstance(value, Mapping):  # JSON's keys are text
            value = [[_plain(label), float(weight)] for label, weight in value.items()]
        plain[name] = value
    return plain


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


def _dump_columns(columns: list[Column] | None) -> list[dict[str, Any]] | None:
    return None if columns is None else [column.model_dump(mode="json") for column in columns]
