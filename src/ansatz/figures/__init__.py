"""Figures, sections and pages of reports, independent of any model."""

from ansatz.figures.decades import logarithmic as logarithmic
from ansatz.figures.page import render as render
from ansatz.figures.page import write_page as write_page
from ansatz.figures.section import Chapter as Chapter
from ansatz.figures.section import Figure as Figure
from ansatz.figures.section import Section as Section
from ansatz.figures.section import Table as Table
from ansatz.figures.section import Text as Text
from ansatz.figures.style import figure as figure
from ansatz.figures.style import thin as thin
from ansatz.figures.style import to_svg as to_svg
