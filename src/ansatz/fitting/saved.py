"""A fitted model on disk: a folder of JSON and tensors that no loader ever executes."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ansatz import inference, likelihoods, networks, outcomes, structures
from ansatz.errors import ModelError, UsageError
from ansatz.fitting.contracts.outcome import Outcome
from ansatz.fitting.contracts.rows import Encoder, HoldsTensors
from ansatz.fitting.contracts.structure import Structure
from ansatz.fitting.model import Model, Trained, estimator_of
from ansatz.fitting.recalibration import Recalibration
from ansatz.fitting.recipe import Recipe
from ansatz.fitting.recipe_options import plain_augment
from ansatz.fitting.request import fit_settings
from ansatz.fitting.specification import (
    FeatureRecord,
    HistoryRecord,
    LikelihoodRecord,
    MemberRecord,
    NetworkRecord,
    RecalibrationRecord,
    Specification,
    present_name,
)
from ansatz.fitting.summaries import SavedSummary, summarize_linear
from ansatz.fitting.task import ARGUMENTS, Settings, Task, inference_of
from ansatz.fitting.training import ready
from ansatz.likelihoods import Likelihood
from ansatz.linear import Estimates
from ansatz.spec import TargetSpec
from ansatz.storage import (
    encode_json,
    load_into,
    pack_state,
    read_json,
    read_tensors,
    unpack_state,
    verify_folder,
    write_folder,
)
from ansatz.storage.decoding import decoding
from ansatz.training import History, Supervised

_DEFAULTS: dict[str, Any] = {  # of arguments that JSON cannot hold, or that older models lack
    "random_state": 0,
    "inference": "point",
    "device": "auto",
    "time_limit": None,
    "n_jobs": None,
    "verbose": 0,
}
_KINDS = "biufUO"  # of labels that can be saved


def save(model: Any, folder: str | Path, *, overwrite: bool = False) -> Path:
    """Writes a fitted estimator, or a fitted model, as a folder, whole or not at all.

    Args:
        model: fitted.
        folder: to write.
        overwrite: replace what is there.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> from ansatz import Regressor, load
        >>> from ansatz.estimators import save
        >>> model = Regressor().fit(np.arange(20.0).reshape(-1, 1), np.arange(20.0))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = save(model, f"{folder}/model")
        ...     load(f"{folder}/model").n_features_in_
        1
    """
    return save_model(getattr(model, "model_", model), folder, overwrite=overwrite)


def load(
    folder: str | Path, *, network: nn.Module | None = None, allow_unconverged: bool = False
) -> Any:
    """Loads the estimator saved in ``folder``, after verifying its checksums.

    Args:
        folder: that ``save`` or ``ansatz fit`` wrote.
        network: a module of the shape of the one that was saved, where it is the user's own.
        allow_unconverged: whether the model answers although its draws have failed to converge.

    Example:
        >>> from ansatz import load
        >>> load("nowhere")
        Traceback (most recent call last):
        ...
        ansatz.errors.ModelError: nowhere: there is no such folder
    """
    model = load_model(folder, network=network)
    model.allows_unconverged = allow_unconverged
    return estimator_of(model)


def save_model(model: Model, folder: str | Path, *, overwrite: bool = False) -> Path:
    """Writes a fitted model as a folder, whole or not at all."""
    files: dict[str, Any] = {
        "ansatz.json": encode_json(_specify(model).model_dump(mode="json")),
        "weights.safetensors": model.posterior.tensors(),
    }
    kept = model.encoder.tensors() if isinstance(model.encoder, HoldsTensors) else {}
    if kept:  # what predictions of other rows need beside the weights, like a graph
        files["encoder.safetensors"] = kept
    learned = model.outcome.tensors()
    if learned:
        files["outcome.safetensors"] = learned
    if model.conformal_scores is not None:
        files["conformal.safetensors"] = {"scores": model.conformal_scores.contiguous()}
    if model.estimates:  # so that means and tests keep their standard errors
        named = [{"names": each.names, "outputs": each.outputs} for each in model.estimates]
        files["linear.json"] = encode_json({"estimates": named})
        files["linear.safetensors"] = {
            f"{k}.{name}": tensor
            for k, each in enumerate(model.estimates)
            for name, tensor in each.tensors().items()
        }
    if model.row_keys is not None:  # so that evaluate can find duplicates of training rows
        files["rows.safetensors"] = {"keys": torch.from_numpy(model.row_keys.view(np.int64))}
    if model.optimizer_state is not None:  # so that partial_fit goes on where it was
        packed, tensors = pack_state(model.optimizer_state)
        files["optimizer.json"], files["optimizer.safetensors"] = encode_json(packed), tensors
    return write_folder(folder, files, kind="model", overwrite=overwrite)


def load_model(folder: str | Path, *, network: nn.Module | None = None) -> Model:
    """Loads the model saved in ``folder``, after verifying its checksums."""
    path = Path(folder)
    manifest = verify_folder(path, "model")
    with decoding(path / "ansatz.json", to=ModelError):
        record = Specification.read(read_json(path / "ansatz.json"))
        model = _rebuild(record, path, network, manifest.files)
        if "conformal.safetensors" in manifest.files:
            model.conformal_scores = read_tensors(path / "conformal.safetensors")["scores"]
        if "linear.json" in manifest.files:
            model.estimates = _estimates(path)
        if "rows.safetensors" in manifest.files:
            model.row_keys = _row_keys(path / "rows.safetensors")
        if "optimizer.json" in manifest.files:
            packed = read_json(path / "optimizer.json")
            tensors = read_tensors(path / "optimizer.safetensors")
            model.optimizer_state = unpack_state(packed, tensors)
    return model


def _specify(model: Model) -> Specification:
    posterior, outcome, trained = model.posterior, model.outcome, model.posterior.networks
    likelihood = trained[0].likelihood if trained else posterior.likelihood
    labels = outcome.labels
    if labels is not None and labels.dtype.kind not in _KINDS:
        raise UsageError(f"classes of type {labels.dtype} cannot be saved; make them text.")
    network = None
    if trained:
        network = NetworkRecord(
            name=trained[0].name, options=trained[0].options, outputs=_outputs(trained[0])
        )
    recalibration = model.recalibration
    return Specification(
        structure=model.structure.name,
        outcome=MemberRecord(name=outcome.name, state=outcome.state()),
        inference=MemberRecord(name=posterior.name, state=posterior.record()),
        parameters=_plain_parameters(model.task.settings.arguments),
        likelihood=LikelihoodRecord(name=likelihood.name, options=likelihood.options),
        network=network,
        column_roles=model.column_roles,
        features=FeatureRecord(**model.features),
        preprocessing=model.encoder.state(),
        has_offset=model.has_offset,
        recipe=None if model.recipe is None else model.recipe.model_dump(mode="json"),
        history=None if model.history is None else HistoryRecord(**model.history.state_dict()),
        recalibration=None
        if recalibration is None
        else RecalibrationRecord(**recalibration._asdict()),
        summary=_summary(model),
        evidence=model.evidence,
        iterations=model.iterations,
    )


def _rebuild(
    record: Specification, path: Path, network: nn.Module | None, files: Mapping[str, Any]
) -> Model:
    structure: Structure = structures.create(record.structure)
    outcome: Outcome = outcomes.create(record.outcome.name)
    outcome.load(record.outcome.state, _outcome_tensors(path, files))
    encoder = structure.load_encoder(record.preprocessing)
    if "encoder.safetensors" in files and isinstance(encoder, HoldsTensors):
        encoder.load_tensors(read_tensors(path / "encoder.safetensors"))
    # Any improvement was progress before there was a least one.
    before = {"min_improvement": 0.0}
    recipe = None if record.recipe is None else Recipe.model_validate({**before, **record.recipe})
    settings = Settings.of_arguments(_arguments(record, network))
    where = str(path / "weights.safetensors")
    tensors = {present_name(k): v for k, v in read_tensors(path / "weights.safetensors").items()}

    def build(tensors: Mapping[str, Tensor]) -> Trained:
        made = _trained(record, outcome, encoder, tensors, network, where)
        return ready(structure, encoder, made, recipe)

    inferred: Any = inference.create(record.inference.name)
    try:
        posterior = outcome.rebuild(
            inferred, structure, encoder, record.inference.state, tensors, build
        )
    except ModelError as error:
        raise error if str(path) in str(error) else ModelError(f"{where}: {error}") from None
    outcome.choose(settings)
    posterior.options = dict(settings.options)
    history = record.history
    return Model(
        Task(structure, outcome, inference_of(settings.inference), settings),
        posterior,
        record.features.model_dump(mode="json"),
        recipe=recipe,
        history=None if history is None else History.from_state(history.model_dump()),
        has_offset=record.has_offset,
        iterations=record.iterations,
        recalibration=None
        if record.recalibration is None
        else Recalibration(**record.recalibration.model_dump()),
        column_roles=record.column_roles,
        evidence=record.evidence,
        summary=record.summary,
    )


def _outcome_tensors(path: Path, files: Mapping[str, Any]) -> dict[str, Tensor]:
    for name in ("outcome.safetensors", "followed.safetensors"):  # the latter in format 1
        if name in files:
            return read_tensors(path / name)
    return {}


def _trained(
    record: Specification,
    outcome: Outcome,
    encoder: Encoder,
    tensors: Mapping[str, Tensor],
    network: nn.Module | None,
    where: str,
) -> Trained:
    """One network with its objective."""
    assert record.network is not None
    likelihood = likelihoods.create(record.likelihood.name, **record.likelihood.options).double()
    shift, scale = tensors.get("objective.shift"), tensors.get("objective.scale")
    target = outcome.target(likelihood)
    _check_outputs(record.network.outputs, likelihood, target, shift, scale)
    objective = Supervised(likelihood, shift, scale, axis=-1 if target.axis == "row" else 1)
    _take_targets(likelihood, tensors, target)
    module = _network(record, encoder, network)
    for name, part in (("network", module), ("objective", objective)):
        prefix = f"{name}."
        own = {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}
        load_into(part, own, where=where)
    name, options = record.network.name, record.network.options
    return Trained(module, objective, name, options, encoder.dtype)


def _arguments(record: Specification, network: nn.Module | None) -> dict[str, Any]:
    """The estimator's arguments; what JSON cannot hold is made from the rest of the record."""
    unknown = [name for name in record.parameters if name not in ARGUMENTS | fit_settings()]
    if unknown:
        raise ModelError(f"unknown parameter '{unknown[0]}'.")
    given = {**_DEFAULTS, **record.parameters}
    if "likelihood" not in given:
        given["likelihood"] = likelihoods.create(
            record.likelihood.name, **record.likelihood.options
        )
    if "network" not in given:
        given["network"] = _own(record, network)
    if isinstance(given.get("class_weight"), list):
        given["class_weight"] = {label: weight for label, weight in given["class_weight"]}
    return given


def _check_outputs(
    size: int,
    likelihood: Likelihood,
    target: TargetSpec,
    shift: Tensor | None,
    scale: Tensor | None,
) -> None:
    """The likelihood's raw numbers, the network's outputs and the shift must be equally many."""
    outputs = likelihood.outputs(target) * math.prod(target.shape)
    if (shift is None) != (scale is None):
        raise ModelError("shift and scale come together")
    for each in [size, *(t.numel() for t in (shift, scale) if t is not None)]:
        if each != outputs:
            raise ModelError(f"{likelihood.name} needs {outputs} raw numbers per row, not {each}")


def _take_targets(
    likelihood: Likelihood, tensors: Mapping[str, Tensor], target: TargetSpec
) -> None:
    """Units and dispersions are one number per target, which a fresh likelihood cannot know."""
    prefix, shape = "objective.likelihood.", (math.prod(target.shape),)
    own = {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}
    if likelihood.event_ndim:  # as many numbers as a vector has
        likelihood.load_state_dict(own, strict=False)
    elif target.shape:
        likelihood.load_state_dict({n: t for n, t in own.items() if t.shape == shape}, strict=False)


def _network(record: Specification, encoder: Encoder, network: nn.Module | None) -> nn.Module:
    assert record.network is not None
    if record.network.options is None:
        return _own(record, network).to(encoder.dtype)
    created: nn.Module = networks.create(
        record.network.name,
        inputs=encoder.spec,
        outputs=record.network.outputs,
        generator=torch.Generator().manual_seed(0),
        **record.network.options,
    )
    return created.to(encoder.dtype)


def _own(record: Specification, network: nn.Module | None) -> nn.Module:
    """The module that the user gives in the place of one that no registry has."""
    if network is None:
        name = "" if record.network is None else f" {record.network.name}"
        raise UsageError(
            f"the network{name} is one of your own: pass one of the same shape, "
            "ansatz.load(folder, network=module)."
        )
    return network


def _estimates(path: Path) -> list[Estimates]:
    record, tensors = read_json(path / "linear.json"), read_tensors(path / "linear.safetensors")
    listed = record.get("estimates") if isinstance(record, dict) else None
    if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
        raise ModelError(f"{path / 'linear.json'}: expected a list of estimates.")
    return [
        Estimates.load(
            each,
            {n.removeprefix(f"{k}."): t for n, t in tensors.items() if n.startswith(f"{k}.")},
        )
        for k, each in enumerate(listed)
    ]


def _row_keys(path: Path) -> NDArray[np.uint64]:
    keys = read_tensors(path).get("keys")
    if keys is None or keys.dtype != torch.int64 or keys.ndim != 1:
        raise ModelError(f"{path}: expected one tensor 'keys' of 64-bit integers.")
    found: NDArray[np.uint64] = keys.numpy().view(np.uint64)
    return found


def _summary(model: Model) -> SavedSummary | None:
    own = model.outcome.summary(model)
    if own is not None:
        return SavedSummary.of(own)
    if model.linear:
        return SavedSummary.of(summarize_linear(model))
    return model.summary


def _outputs(trained: Trained) -> int:
    if trained.objective.shift is not None:
        return trained.objective.shift.numel()
    *_, last = (m for m in trained.network.modules() if isinstance(m, nn.Linear))
    return int(last.out_features)


def _plain_parameters(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that JSON can hold; objects are recorded elsewhere."""
    plain: dict[str, Any] = {}
    for name, value in arguments.items():
        if isinstance(value, (nn.Module, np.random.RandomState)) or name == "callbacks":
            continue
        if name == "teacher" and value is not None and not isinstance(value, str):
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
