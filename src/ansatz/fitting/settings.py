"""What was set of a fit, whoever set it: an estimator's arguments or a request's options."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from torch import nn

from ansatz import likelihoods
from ansatz.errors import UsageError
from ansatz.likelihoods import Likelihood

_FIELDS = {  # arguments of an estimator that are fields of their own
    *("likelihood", "likelihood_options", "network", "network_options", "inference"),
    *("random_state", "n_jobs", "device", "time_limit", "verbose"),
}
ARGUMENTS = _FIELDS | {"x"}  # of estimators that no owner of options declares


@dataclass(frozen=True)
class Settings:
    """The answers and options of one fit; they are checked when a fit needs them, not before.

    Args:
        likelihood: by name, or made.
        network: by name, a module, or ``"auto"`` for the structure's default.
        inference: by name.
        likelihood_options: of a likelihood given by name.
        network_options: of the network's factory.
        options: everything else, by name: of the training, the structure, the outcome or the
            inference; each is read by whom it belongs to.
        seed: of everything random.
        device: ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"mps"``.
        time_limit: seconds of training.
        threads: None chooses by the network's size.
        progress: 0 silent, 1 a progress bar, 2 one line per evaluation, or ``"auto"``.
    """

    likelihood: str | Likelihood = "normal"
    network: str | nn.Module = "auto"
    inference: str = "point"
    likelihood_options: Mapping[str, Any] = field(default_factory=dict)
    network_options: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    device: str = "auto"
    time_limit: float | None = None
    threads: int | None = None
    progress: int | str = 0

    def __post_init__(self) -> None:
        for name in ("likelihood_options", "network_options"):
            given = getattr(self, name)
            if not isinstance(given, Mapping):
                raise UsageError(f"{name} must map names to values, got {given!r}.")
        if not isinstance(self.network, str | nn.Module):
            raise UsageError(
                "network is a name (ansatz list networks) or a torch.nn.Module, got a "
                f"{type(self.network).__name__}."
            )
        if isinstance(self.likelihood, Likelihood) and self.likelihood_options:
            raise UsageError("likelihood_options go with a likelihood by name, not a made one.")

    @classmethod
    def of_arguments(cls, given: Mapping[str, Any]) -> "Settings":
        """Settings from the arguments of an estimator, by their names there."""
        return cls(
            given["likelihood"],
            given["network"],
            given["inference"],
            given.get("likelihood_options") or {},
            given.get("network_options") or {},
            {name: value for name, value in given.items() if name not in _FIELDS},
            given["random_state"],
            given["device"],
            given["time_limit"],
            given["n_jobs"],
            given["verbose"],
        )

    @property
    def arguments(self) -> dict[str, Any]:
        """The same as arguments of an estimator."""
        return {
            **self.options,
            "likelihood": self.likelihood,
            "likelihood_options": dict(self.likelihood_options) or None,
            "network": self.network,
            "network_options": dict(self.network_options) or None,
            "inference": self.inference,
            "random_state": self.seed,
            "device": self.device,
            "time_limit": self.time_limit,
            "n_jobs": self.threads,
            "verbose": self.progress,
        }

    def get(self, name: str, default: Any = None) -> Any:
        """An option by name, ``default`` where it was not set."""
        found = self.options.get(name)
        return default if found is None else found

    def change(self, **changes: Any) -> "Settings":
        """The same with other values."""
        return replace(self, **changes)

    def law(self, *, few: bool) -> Likelihood:
        """Makes the likelihood; one by name has a constant dispersion where rows are few."""
        if isinstance(self.likelihood, Likelihood):
            return self.likelihood
        options = dict(self.likelihood_options)
        kind = likelihoods.registry.get(self.likelihood)
        if few and "dispersion" in inspect.signature(kind).parameters:
            options = {"dispersion": "constant", **options}
        law: Likelihood = likelihoods.create(self.likelihood, **options)
        return law

    @property
    def law_name(self) -> str:
        """The likelihood as the registry spells it."""
        return self.likelihood if isinstance(self.likelihood, str) else self.likelihood.name

    @property
    def is_linear(self) -> bool:
        """Whether the linear model of the structure is asked for."""
        return self.network == "linear"

    @property
    def trainer_options(self) -> dict[str, Any]:
        """What :class:`~ansatz.training.Trainer` is told."""
        return {
            "device": self.device,
            "time_limit": self.time_limit,
            "progress": self.progress,
            "threads": self.threads or "auto",
        }
