"""The report on energies and forces: parity, errors by element, and the certificate."""

from ansatz.report.outcome_report import OutcomeReport


class ForcesReport(OutcomeReport):
    """The contribution of energies and forces."""
