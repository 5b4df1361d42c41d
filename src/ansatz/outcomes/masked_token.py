"""Hidden tokens of a text as outcome: masked language models."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from ansatz.fitting.contracts.inference import Posterior
from ansatz.fitting.job import Job
from ansatz.likelihoods import Likelihood
from ansatz.outcomes.next_token import NextToken

if TYPE_CHECKING:
    from ansatz.fitting.contracts.structure import Structure


class MaskedToken(NextToken):
    """Each hidden token of a passage, given all others."""

    name: ClassVar[str] = "masked"
    estimator: ClassVar[str] = "ansatz.estimators.language_model:LanguageModel"
    report: ClassVar[str] = "ansatz.outcomes.report.language:MaskedReport"
    solved: ClassVar[frozenset[str]] = frozenset()

    def baselines(
        self, structure: "Structure", likelihood: Likelihood, job: Job, seed: int
    ) -> tuple[Mapping[str, Posterior], list[str]]:
        """None: the constant model gives each token its frequency."""
        return {}, []
