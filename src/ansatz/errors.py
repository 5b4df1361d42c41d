"""Errors of ansatz, each with the exit status of the command line.

An error's text is one line in the user's words: what was asked, what came, what to do.
"""

import signal


class AnsatzError(Exception):
    """Base class of the errors that ansatz raises on purpose.

    ``exit_status`` is what the command line exits with.

    Example:
        >>> from ansatz.errors import AnsatzError, DataError
        >>> issubclass(DataError, AnsatzError), DataError("row 3: expected a number").exit_status
        (True, 3)
    """

    exit_status = 1


class UsageError(AnsatzError, ValueError):
    """An option or argument that cannot be honoured (exit status 2)."""

    exit_status = 2


class DataError(AnsatzError, ValueError):
    """Data that cannot be read or that the likelihood cannot produce (exit status 3)."""

    exit_status = 3


class ModelError(AnsatzError, ValueError):
    """A saved model or checkpoint that is damaged, foreign or too new (exit status 4)."""

    exit_status = 4


class ResourceError(AnsatzError, OSError):
    """Too little disk or memory (exit status 5)."""

    exit_status = 5


class NumericalError(AnsatzError, ArithmeticError):
    """A loss or weight that became nan or infinite (exit status 6)."""

    exit_status = 6


class ConvergenceError(NumericalError):
    """Draws of chains that disagree, on which nothing should rest (exit status 6)."""


class BusyError(AnsatzError):
    """Another process is writing there (exit status 7)."""

    exit_status = 7


class MissingExtraError(AnsatzError, ImportError):
    """An optional package that this request needs is not installed (exit status 2).

    Args:
        what: what needs it, in the user's words.
        extra: the name of ansatz's extra that brings it.

    Example:
        >>> from ansatz.errors import MissingExtraError
        >>> str(MissingExtraError("Parquet files", "data"))
        "Parquet files need an optional package: pip install 'ansatz-learn[data]'"
    """

    exit_status = 2

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} need an optional package: pip install 'ansatz-learn[{extra}]'")


class Interrupted(KeyboardInterrupt):
    """Training ended by a signal, after a whole step; the best weights so far are in the network.

    A KeyboardInterrupt, so that ``except Exception`` does not swallow it. ``exit_status`` is 130
    for an interrupt and 143 for a termination, as shells expect.

    Args:
        number: the signal.
        step: steps done.
        checkpoint: where the run can be resumed from; None without one.

    Example:
        >>> import signal
        >>> from ansatz.errors import Interrupted
        >>> Interrupted(signal.SIGTERM, step=40).exit_status
        143
    """

    def __init__(self, number: int, step: int, checkpoint: str | None = None) -> None:
        self.signal, self.step, self.checkpoint = int(number), step, checkpoint
        how = "interrupted" if number == signal.SIGINT else "terminated"
        saved = f"; saved in {checkpoint}, resume=True continues" if checkpoint else ""
        super().__init__(f"{how} after step {step}{saved}.")

    @property
    def exit_status(self) -> int:
        """128 + the signal's number."""
        return 128 + self.signal
