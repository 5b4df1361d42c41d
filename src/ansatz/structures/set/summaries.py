"""The linear model of sets: linear in features of each set that are computed once."""

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz import inference, networks
from ansatz.data.sets.batch import chunks
from ansatz.fitting.contracts.inference import Posterior
from ansatz.fitting.contracts.structure import Facts, Structure
from ansatz.fitting.job import Job
from ansatz.fitting.recipe import Recipe, default_recipe
from ansatz.fitting.task import TrainingPlan
from ansatz.fitting.tensor_structure import TensorStructure
from ansatz.inference.registry import DEFAULT
from ansatz.likelihoods import Likelihood
from ansatz.spec import InputSpec

STEPS = 500
AT_ONCE = 2**15  # elements


class Summaries:
    """Encoder: the features of a linear network, with mean 0 and standard deviation 1."""

    dtype, columns = torch.float64, ()

    def __init__(self, encoder: Any, network: str, rows: Any) -> None:
        self.encoder = encoder
        made: Any = networks.create(network, encoder.spec, 1).to(encoder.dtype)
        self.network = made
        inputs = encoder.inputs(rows, notes=[])
        begin: Any = getattr(made, "begin", None)
        if begin is not None:
            begin(*inputs, slopes=None)
        found = self._features(inputs)
        self.center, scale = found.mean(0), found.std(0, correction=0)
        self.scale = torch.where(scale > 1e-9, scale, 1.0)

    @property
    def spec(self) -> InputSpec:
        """The number of features."""
        return InputSpec.of(len(self.center))

    @property
    def notes(self) -> list[str]:
        """None."""
        return []

    def _features(self, inputs: Any) -> Tensor:
        with torch.no_grad():
            features: Any = self.network.features
            parts = [features(*inputs.take_rows(part)) for part in chunks(inputs, AT_ONCE)]
        return torch.cat(parts).double()

    def inputs(self, rows: Any, *, notes: list[str] | None = None) -> tuple[Tensor, ...]:
        """The features of each row."""
        inputs = self.encoder.inputs(rows, notes=[] if notes is None else notes)
        return ((self._features(inputs) - self.center) / self.scale,)

    def state(self) -> dict[str, Any]:
        """Nothing: it is not saved."""
        return {}


class SummaryStructure(TensorStructure):
    """Sets as the features of a linear network."""

    name: ClassVar[str] = "summaries"

    def __init__(self, whole: Structure, axis: str) -> None:
        self.whole, self.axis = whole, axis

    def encoder(
        self, rows: Any, weight: NDArray[Any], recipe: Recipe, options: Mapping[str, Any]
    ) -> Any:
        """The features of the training rows."""
        encoder = self.whole.encoder(rows, weight, recipe, options)
        return Summaries(encoder, self.whole.linear_network(self.axis), rows)


def fit_summaries(
    structure: Structure, likelihood: Likelihood, job: Job, seed: int
) -> tuple[Posterior, list[str]]:
    """Fits the linear model of a structure of sets, in 500 steps of all rows."""
    facts = Facts(float(job.weight.sum()), None, job.target, not likelihood.additive)
    recipe = default_recipe(facts).model_copy(
        update={"steps": STEPS, "bins": 0, "batch_size": 0, "learning_rate": 3e-2, "folds": 0}
    )
    recipe = recipe.model_copy(update={"holdout": 0.0, "weight_decay": 1e-3, "dtype": "float64"})
    summaries = SummaryStructure(structure, job.target.axis)  # type: ignore[abstract]
    plan = TrainingPlan(summaries, "linear", {}, recipe, seed, {}, {"progress": 0})
    fitted = inference.create(DEFAULT).fit(
        plan, job._replace(valid=None, trainer_options={}), likelihood
    )
    return fitted.posterior, []
