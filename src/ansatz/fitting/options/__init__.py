"""Every option of a fit, written once, with its owner; nothing here imports torch."""

from ansatz.fitting.options.option import Option as Option
from ansatz.fitting.options.option import declared as declared
from ansatz.fitting.options.commands import FitCommand as FitCommand
from ansatz.fitting.options.commands import FitOptions as FitOptions
from ansatz.fitting.options.commands import TuneOptions as TuneOptions
