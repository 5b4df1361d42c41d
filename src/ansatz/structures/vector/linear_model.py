"""The linear model of a table: a GLM for each target, put where a network would be."""

import inspect
import re
from collections.abc import Sequence
from typing import Literal

from ansatz import likelihoods, networks
from ansatz.data import Preprocessor
from ansatz.fitting.job import Job
from ansatz.fitting.model import TableModel
from ansatz.likelihoods import Censored, Likelihood, Truncated
from ansatz.linear import LinearFit, fit_linear, join_targets
from ansatz.training import Supervised

Dispersion = Literal["constant", "predicted"]


def fit_linear_model(
    law: Likelihood,
    job: Job,
    *,
    dispersion: Dispersion | None = None,
    class_names: Sequence[str] | None = None,
    column_names: Sequence[str] | None = None,
    null: bool = True,
) -> tuple[TableModel, list[LinearFit]]:
    """The maximum-likelihood linear model of each target, as one model of the table.

    Args:
        law: of each target.
        job: the rows.
        dispersion: the same for all rows, or linear in x as well. Default: the latter only where
            the law was made with ``dispersion="predicted"`` in so many words.
        class_names: names of the classes.
        column_names: of an array's columns, which have none of their own.
        null: whether the model without x is fitted too, for the summary.

    Example:
        >>> import numpy as np
        >>> from ansatz import Regressor
        >>> from ansatz.structures.vector.linear_model import fit_linear_model
        >>> from ansatz.likelihoods import Poisson
        >>> job = Regressor()._read(np.arange(6.0).reshape(-1, 1), np.array([0, 1, 1, 2, 4, 5.0]))
        >>> model, (fit,) = fit_linear_model(Poisson(), job)
        >>> fit.converged
        True
    """
    if dispersion is None:
        told = getattr(law, "law", law).options.get("dispersion")
        dispersion = "predicted" if told == "predicted" else "constant"
    weight = job.weight.numpy()
    preprocessor = Preprocessor.fit(job.rows, job.columns, weight=weight, purpose="linear")
    (design,) = preprocessor.transform(job.rows)
    names = preprocessor.feature_names
    if job.columns is None and column_names is not None:
        names = [_named(name, column_names) for name in names]
    fits = [
        fit_linear(
            law,
            design,
            y,
            weight=job.weight,
            precision=job.precision,
            offset=job.offset,
            feature_names=names,
            null=null,
            dispersion=dispersion,
            class_names=class_names,
        )
        for y in (job.y.unbind(1) if job.target.shape else [job.y])
    ]
    if job.target.shape:
        solved, objective = join_targets(fits)
    else:
        solved, objective = fits[0].to_network(), Supervised(fits[0].likelihood)
    network = networks.create("linear", inputs=preprocessor.spec, outputs=solved.out_features)
    network.output = solved
    return TableModel(preprocessor, network, objective, "linear", {}), fits


def _named(feature: str, names: Sequence[str]) -> str:
    """x2[missing] -> age[missing], the second column being age."""
    return re.sub(r"^x(\d+)", lambda found: str(names[int(found[1]) - 1]), feature)


def with_dispersion(law: Likelihood, dispersion: Dispersion) -> Likelihood:
    """The same law with its dispersion constant or predicted; one that is given stays as it is.

    Example:
        >>> from ansatz.structures.vector.linear_model import with_dispersion
        >>> from ansatz.likelihoods import Normal
        >>> with_dispersion(Normal(), "constant").options
        {'dispersion': 'constant'}
    """
    if not varies(law):
        return law
    if isinstance(law, Censored):
        return Censored(law=with_dispersion(law.law, dispersion))
    if isinstance(law, Truncated):
        inner = with_dispersion(law.law, dispersion)
        return Truncated(inner, lower=law.options["lower"], upper=law.options["upper"])
    changed: Likelihood = likelihoods.create(law.name, **{**law.options, "dispersion": dispersion})
    return changed


def current_dispersion(law: Likelihood) -> str | float | None:
    """``"predicted"``, ``"constant"``, what is given instead, or None for a law that has none.

    Example:
        >>> from ansatz.structures.vector.linear_model import current_dispersion
        >>> from ansatz.likelihoods import Poisson
        >>> current_dispersion(Poisson()) is None
        True
    """
    law = getattr(law, "law", law)  # what is censored or truncated
    parameter = inspect.signature(type(law).__init__).parameters.get("dispersion")
    if parameter is None:
        return None
    found: str | float = law.options.get("dispersion", parameter.default)
    return found


def varies(law: Likelihood) -> bool:
    """Whether the law has a dispersion that is learned, once or from x: neither known nor measured.

    Example:
        >>> from ansatz.structures.vector.linear_model import varies
        >>> from ansatz.likelihoods import Barron, Normal
        >>> varies(Normal()), varies(Normal(dispersion=0.5)), varies(Barron(dispersion="mad"))
        (True, False, False)
    """
    return current_dispersion(law) in ("constant", "predicted")
