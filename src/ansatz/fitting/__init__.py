"""The pipeline of a fit: what was asked, and what follows from it."""

from ansatz.fitting.options import FitOptions as FitOptions
from ansatz.fitting.options import Option as Option
from ansatz.fitting.request import Request as Request
