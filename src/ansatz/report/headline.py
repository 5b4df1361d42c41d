"""The verdict of a report in two sentences."""

from ansatz.figures.printable import printable
from ansatz.report.evidence import Evidence
from ansatz.report.scores import verdict
from ansatz.report.what_was_fitted import describe_network, law_name


def headline(evidence: Evidence) -> list[str]:
    """What was fitted and whether it beats simpler models; whether it is calibrated."""
    count = len(evidence.weight)
    what = (
        f"{describe_network(evidence).capitalize()} of {printable(evidence.target, 80)} with the "
        f"{law_name(evidence)} {'law' if evidence.law.is_law else 'loss'}, judged on {count} "
        f"{evidence.unit.many} that it never saw:"
    )
    beats = verdict(evidence, "linear") or verdict(evidence, "constant")
    if not beats:
        beats = "there was no simpler model to compare it with."
    return [f"{what} {beats[0].lower()}{beats[1:]}", f"Calibration: {calibration(evidence)}"]


def calibration(evidence: Evidence) -> str:
    """Whether what is said to happen so often does, in a sentence.

    Numbers: the coverage of 90 % intervals with a Wilson interval. Classes: Spiegelhalter's test
    of the probabilities. Survival: whether as many rows had the event as the curves expected.

    References:
        Spiegelhalter (1986), Probabilistic prediction in patient management and clinical trials.
        https://doi.org/10.1002/sim.4780050506
    """
    return evidence.outcome_report.calibration(evidence)
