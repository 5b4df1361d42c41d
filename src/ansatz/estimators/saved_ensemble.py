"""An ensemble on disk: the members' tensors with a leading axis, and how they are put together."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ansatz import likelihoods, networks
from ansatz.data import Preprocessor
from ansatz.errors import ModelError
from ansatz.estimators.ensemble_model import EnsembleModel
from ansatz.estimators.specification import EnsembleRecord, LawRecord, LinearRecord
from ansatz.estimators.table_model import TableModel
from ansatz.inference import Recalibration
from ansatz.storage import load_into
from ansatz.training import Supervised


def ensemble_tensors(model: EnsembleModel) -> dict[str, Tensor]:
    """The networks' tensors stacked, the linear model's and the merged law's by themselves.

    Example:
        >>> import inspect
        >>> from ansatz.estimators.saved_ensemble import ensemble_tensors
        >>> list(inspect.signature(ensemble_tensors).parameters)
        ['model']
    """
    parts = [member.tensors() for member in model.networks]
    found = {name: torch.stack([part[name] for part in parts]) for name in parts[0]}
    for member in model.members:
        if member.preprocessor is not model.preprocessor:
            found |= {f"linear.{name}": value for name, value in member.tensors().items()}
    if model.combination.merged:
        served = model.combination.likelihood.state_dict()
        found |= {f"served.{name}": value for name, value in served.items()}
    return found


def describe_ensemble(
    model: TableModel, recalibration: Recalibration | None
) -> EnsembleRecord | None:
    """What is no tensor about an ensemble; None for another model.

    Example:
        >>> import numpy as np
        >>> from ansatz import Regressor
        >>> from ansatz.estimators.saved_ensemble import describe_ensemble
        >>> model = Regressor(network="linear").fit(np.arange(4.0).reshape(-1, 1), np.arange(4.0))
        >>> describe_ensemble(model.model_, None) is None
        True
    """
    if not isinstance(model, EnsembleModel):
        return None
    linear = [m for m in model.members if m.preprocessor is not model.preprocessor]
    return EnsembleRecord(
        members=len(model.networks),
        weights=model.weights.tolist(),
        factor=model.factor,
        recalibration=None if recalibration is None else recalibration._asdict(),
        linear=_linear_record(linear[0]) if linear else None,
    )


def _linear_record(model: TableModel) -> LinearRecord:
    law = model.objective.likelihood
    *_, last = (m for m in model.network.modules() if isinstance(m, nn.Linear))
    return LinearRecord(
        preprocessing=model.preprocessor.state(),
        law=LawRecord(name=law.name, options=law.options),
        outputs=int(last.out_features),
    )


def member_tensors(
    tensors: Mapping[str, Tensor], record: EnsembleRecord, where: str
) -> list[dict[str, Tensor]]:
    """The tensors of each network, from those with a leading axis.

    Example:
        >>> import torch
        >>> from ansatz.estimators.saved_ensemble import member_tensors
        >>> from ansatz.estimators.specification import EnsembleRecord
        >>> record = EnsembleRecord(members=2, weights=[0.5, 0.5])
        >>> member_tensors({"network.w": torch.ones(2, 3)}, record, "here")[1]
        {'network.w': tensor([1., 1., 1.])}
    """
    own = {n: t for n, t in tensors.items() if n.startswith(("network.", "objective."))}
    for name, tensor in own.items():
        if not tensor.ndim or len(tensor) != record.members:
            raise ModelError(f"{where}: '{name}' should hold {record.members} members.")
    if len(record.weights) != record.members + (record.linear is not None):
        raise ModelError(f"{where}: {record.members} members have {len(record.weights)} weights.")
    return [{name: tensor[k] for name, tensor in own.items()} for k in range(record.members)]


def rebuild_ensemble(
    record: EnsembleRecord, members: list[TableModel], tensors: Mapping[str, Tensor], where: str
) -> EnsembleModel:
    """Members put together as they were.

    Example:
        >>> import inspect
        >>> from ansatz.estimators.saved_ensemble import rebuild_ensemble
        >>> list(inspect.signature(rebuild_ensemble).parameters)[:2]
        ['record', 'members']
    """
    if record.linear is not None:
        members = [*members, _linear_model(record.linear, tensors, where)]
    weights = torch.tensor(record.weights, dtype=torch.float64)
    model = EnsembleModel(members, weights, record.factor)
    served = _named(tensors, "served.")
    if model.combination.merged:
        model.combination.likelihood.load_state_dict(served, strict=False)  # takes the shapes
        load_into(model.combination.likelihood, served, where=where)
    return model


def _linear_model(record: LinearRecord, tensors: Mapping[str, Tensor], where: str) -> TableModel:
    preprocessor = Preprocessor.from_state(record.preprocessing)
    network: Any = networks.create("linear", inputs=preprocessor.spec, outputs=record.outputs)
    own = _named(tensors, "linear.")
    law = likelihoods.create(record.law.name, **record.law.options).double()
    law.load_state_dict(_named(own, "objective.likelihood."), strict=False)
    objective = Supervised(law, own.get("objective.shift"), own.get("objective.scale"))
    load_parts({"network": network.double(), "objective": objective}, own, where)
    return TableModel(preprocessor, network, objective, "linear", {})


def load_parts(parts: Mapping[str, nn.Module], tensors: Mapping[str, Tensor], where: str) -> None:
    """Gives each module the tensors whose names begin with its own.

    Example:
        >>> import torch
        >>> from ansatz.estimators.saved_ensemble import load_parts
        >>> layer = torch.nn.Linear(1, 1, bias=False)
        >>> load_parts({"network": layer}, {"network.weight": torch.ones(1, 1)}, "here")
        >>> layer.weight.item()
        1.0
    """
    for name, part in parts.items():
        load_into(part, _named(tensors, f"{name}."), where=where)


def _named(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}
