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
        "tag": "ansatz.outcomes.tag:Tags",
        "answer": "ansatz.outcomes.answer.outcome:Answer",
        "translate": "ansatz.outcomes.translation.outcome:Translation",
        "tail": "ansatz.outcomes.tail.outcome:Tail",
        "forecast": "ansatz.outcomes.forecast:Forecast",
        "generate": "ansatz.outcomes.generate:Generate",
        "forces": "ansatz.outcomes.forces.outcome:Forces",
    },
)
CLASS_LIKELIHOODS = ("bernoulli", "categorical", "ordinal", "cross_entropy", "focal")
SURVIVAL_LIKELIHOODS = ("cox", "discrete_hazard", "censored")
# A likelihood -> the outcome that it speaks of, where nobody names one (``--task``).
claims = {
    **dict.fromkeys(CLASS_LIKELIHOODS, "class"),
    **dict.fromkeys(SURVIVAL_LIKELIHOODS, "survival"),
    "plackett_luce": "ranking",
    "autoregressive": "translate",
    "span": "answer",
    "energy_forces": "forces",
}
# How an outcome is recognized where nobody names it: by an option, by the end of a file's name.
by_option: dict[str, str] = {
    "horizon": "forecast",
    "translation": "translate",
    "forces": "forces",
}
by_file: dict[str, str] = {".conllu": "tag", ".conll-u": "tag", ".json": "answer"}
# The structure of outcomes that are found in x itself or in the order of its rows.
on_structure: dict[str, str] = {
    "answer": "questions",
    "forecast": "series",
    "forces": "molecule",
    "language": "passage",
    "masked": "masked_passage",
    "tag": "sequence",
    "tail": "triples",
    "translate": "pairs",
}
# Outcomes that are x itself: there is no target.
without_target = frozenset({"generate"})
# A task that data make more precise: link -> tail where data are triples.
by_data: dict[str, str] = {"link": "ansatz.data.relations.recognition:task_of_links"}
# Tasks that data show where nothing else is asked for: a test of (data, options).
by_contents: dict[str, str] = {"forces": "ansatz.data.molecules.reading:holds_forces"}
CENSORED = "survival"  # of columns of events, entries or bounds, whatever the likelihood
DEFAULT = "number"  # of any other likelihood
create = registry.create
names = registry.names
register = registry.register
