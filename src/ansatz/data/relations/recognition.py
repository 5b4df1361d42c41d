"""Recognizes what links are predicted: tails of triples, or pairs of nodes of one graph."""

from collections.abc import Mapping
from typing import Any

from ansatz.data.relations.triple_files import are_triples


def task_of_links(data: Any, options: Mapping[str, Any]) -> str:
    """The outcome of ``--task link``: tails where data are triples, else links between nodes."""
    return "tail" if are_triples(data, options) else "link"
