"""The options of inferences, as ``--set`` takes them."""

from typing import Annotated, TypedDict

from ansatz.fitting.options.option import Option


class InferenceSettings(TypedDict, total=False):
    """The options of an ensemble."""

    members: Annotated[int, Option("Networks of the ensemble.")]
