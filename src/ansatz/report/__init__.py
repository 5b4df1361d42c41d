"""Reports of a fitted model on held-out rows, as one HTML page."""

from ansatz.report.assembly import build as build
from ansatz.report.assembly import Report as Report
from ansatz.report.assembly import report_model as report_model
from ansatz.report.assembly import write_report as write_report
from ansatz.report.evidence import Evidence as Evidence
from ansatz.report.gathering import gather as gather
from ansatz.report.gathering import replayed as replayed
