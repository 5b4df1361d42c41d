"""The process of one worker: names of claims come in, outcomes go out, a line of JSON each."""

import json
import os
import sys

from ansatz.claims.attempt import Settings, attempt


def main() -> None:
    """Reads the settings, then a name at a time, until standard input closes.

    Example:
        >>> from ansatz.claims.worker import main
        >>> callable(main)
        True
    """
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a claim prints is no answer
    settings = Settings(**json.loads(sys.stdin.readline()))
    for line in sys.stdin:
        outcome = attempt(json.loads(line), settings)
        try:
            answers.write(json.dumps(outcome.to_message()) + "\n")
            answers.flush()
        except BrokenPipeError:  # nobody listens any more
            os._exit(0)
