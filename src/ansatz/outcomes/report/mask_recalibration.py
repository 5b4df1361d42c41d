"""What a temperature did to the probabilities of cells, on images that took part in neither."""

from ansatz.figures.number import number
from ansatz.figures.section import Cell, Section, Table
from ansatz.fitting.contracts.inference import Predictive
from ansatz.outcomes.report.labelled import labelled
from ansatz.report.evidence import Evidence
from ansatz.report.recalibration import NONE, TITLE, paired_change


def section(evidence: Evidence) -> Section | None:
    """The log score of cells before and after; one sentence where there was no recalibration."""
    if not evidence.likelihood.has_distribution:
        return None
    done = evidence.model.recalibration
    if done is None:
        return Section(TITLE, NONE)
    y = evidence.outcome
    likelihood, raw = evidence.predictive()
    before = Predictive(likelihood, raw * done.value)  # the temperature divides the logits
    plain = evidence.model.outcome.row_losses(before, y)
    served = evidence.row_losses()
    cells = evidence.weight * labelled(y).flatten(1).mean(1)
    change = paired_change(plain, served, weight=cells, group=evidence.group)
    gap = change.difference
    verdict = "improved" if gap.high < 0 else "worsened" if gap.low > 0 else "hardly changed"
    lead = (
        f"The logits were divided by a temperature of {done.value:.3f}, found on out-of-fold "
        f"cells. On the test {evidence.unit.many}, which took part in neither, it {verdict} the "
        "nll: "
        f"{number(change.before)} before, {number(change.after)} after (change "
        f"{number(gap.value, 2)}, {number(gap.low, 2)} to {number(gap.high, 2)}; "
        f"{evidence.unit.many} count, not cells)."
    )
    rows: list[list[Cell]] = [[name, done.before[name], done.after[name]] for name in done.before]
    caption = "On cells of examples left out, where it was found."
    return Section(TITLE, lead, [Table(["metric", "before", "after"], rows, caption)])
