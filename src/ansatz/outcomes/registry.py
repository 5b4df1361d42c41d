"""Outcomes by name, and the likelihoods that each of them claims."""

from ansatz.registry import Registry

registry = Registry(
    "outcome",
    {
        "number": "ansatz.outcomes.number:Number",
        "class": "ansatz.outcomes.classes:Classes",
        "survival": "ansatz.outcomes.survival:SurvivalTime",
        "masked": "ansatz.outcomes.next_token:MaskedToken",
        "ranking": "ansatz.outcomes.ranking:Ranking",
        "language": "ansatz.outcomes.next_token:NextToken",
        "mask": "ansatz.outcomes.mask:Mask",
    },
)
CLASS_LIKELIHOODS = ("bernoulli", "categorical", "ordinal", "cross_entropy", "focal")
SURVIVAL_LIKELIHOODS = ("cox", "discrete_hazard", "censored")
# A likelihood -> the outcome that it speaks of, where nobody names one (``--task``).
claims = {
    **dict.fromkeys(CLASS_LIKELIHOODS, "class"),
    **dict.fromkeys(SURVIVAL_LIKELIHOODS, "survival"),
    "plackett_luce": "ranking",
}
# How an outcome is recognized where nobody names it: by an option, by the end of a file's name.
by_option: dict[str, str] = {}
by_file: dict[str, str] = {}
# The structure of outcomes that are found in x itself or in the order of its rows.
on_structure: dict[str, str] = {"language": "passage", "masked": "masked_passage"}
CENSORED = "survival"  # of columns of events, entries or bounds, whatever the likelihood
DEFAULT = "number"  # of any other likelihood
create = registry.create
names = registry.names
register = registry.register
