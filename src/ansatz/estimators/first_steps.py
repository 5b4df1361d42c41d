"""The first steps of every fit: what x looks like, the problem, the estimator."""

import sys
from pathlib import Path
from typing import Any

from ansatz import data as ansatz_data
from ansatz import structures
from ansatz.data.streams.available import reason_to_stream
from ansatz.errors import UsageError
from ansatz.estimators.kinds import make_estimator, split_options
from ansatz.estimators.posing import default_network, pose_as, structure_of
from ansatz.estimators.problem import Problem
from ansatz.estimators.stream_problem import StreamProblem, pose_stream
from ansatz.estimators.table_estimator import TableEstimator
from ansatz.fitting import Request


def with_structure(request: Request) -> Request:
    """Decides what x looks like, and refuses options of other structures.

    Example:
        >>> from ansatz.estimators.first_steps import with_structure
        >>> from ansatz.fitting import Request
        >>> with_structure(Request.of({"a": [1.0]}, {"target": "a"})).given["x"]
        'vector'
    """
    options = request.options
    x = structure_of(request.data, options["x"], image=options["image"])
    structures.registry.get(x)  # a wrong name suggests the nearest right one
    request.check(x)
    return request.but(x=x)


def why_a_stream(request: Request) -> str | None:
    """Says why the rows are not read at once; None where they are.

    Example:
        >>> from ansatz.estimators.first_steps import why_a_stream, with_structure
        >>> from ansatz.fitting import Request
        >>> why_a_stream(with_structure(Request.of({"a": [1.0]}, {"target": "a"}))) is None
        True
    """
    data, options = request.data, request.options
    if options["x"] == "grid":
        return None
    named = isinstance(data, str) and data in ansatz_data.names() and not Path(data).exists()
    if named or not isinstance(data, str | Path):
        if options["stream"]:
            raise UsageError("--stream is for files; these data are in memory already.")
        return None
    limit = options["memory_limit"]
    return reason_to_stream(data, stream=options["stream"], memory_limit=limit)


def pose_request(request: Request) -> Problem:
    """Reads the data of a request and decides what is predicted.

    Example:
        >>> from ansatz.estimators.first_steps import pose_request, with_structure
        >>> from ansatz.fitting import Request
        >>> table = {"a": [1.0, 2.0], "y": [0.5, 1.5]}
        >>> pose_request(with_structure(Request.of(table, {"target": "y"}))).likelihood
        'normal'
    """
    x = request.options["x"]
    assert x is not None
    how = _how(request)
    if x == "grid":
        how["reader"] |= _memory_limit(request)
    return pose_as(x, request.data, request.column_roles(), **how)


def pose_streamed(request: Request, folder: Path, **blocks: Any) -> StreamProblem:
    """Reads the table of a request in one pass and decides what is predicted.

    Args:
        request: with a file.
        folder: for blocks.
        blocks: options of :func:`ansatz.data.streams.open_blocks`.

    Example:
        >>> import inspect
        >>> from ansatz.estimators.first_steps import pose_streamed
        >>> list(inspect.signature(pose_streamed).parameters)
        ['request', 'folder', 'blocks']
    """
    seed = request.options["seed"]
    uses, how = request.column_roles(), _how(request)
    return pose_stream(request.data, uses, folder, seed=seed, **how, **blocks)


def estimator_for(request: Request, problem: Problem) -> TableEstimator:
    """Makes the estimator that a request asks for.

    Example:
        >>> from ansatz.estimators.first_steps import estimator_for, pose_request, with_structure
        >>> from ansatz.fitting import Request
        >>> table = {"a": [1.0, 2.0], "y": [0.5, 1.5]}
        >>> request = with_structure(Request.of(table, {"target": "y"}))
        >>> estimator_for(request, pose_request(request)).network
        'mlp'
    """
    options = request.options
    others, _ = split_options(options["likelihood"], request.settings())
    return make_estimator(
        problem,
        options["network"] or default_network(problem),
        inference=options["inference"],
        options=others,
        random_state=options["seed"],
        device=options["device"],
        time_limit=options["time_limit"],
    )


def _how(request: Request) -> dict[str, Any]:
    options = request.options
    return {
        "likelihood": options["likelihood"],
        "options": split_options(options["likelihood"], request.settings())[1],
        "roles": options["roles"],
        "drop": options["drop"],
        "reader": request.reader(),
    }


def _memory_limit(request: Request) -> dict[str, Any]:
    """What examples may take in memory; those that stream stay in their files."""
    stream, limit = request.options["stream"], request.options["memory_limit"]
    if stream is not None:
        limit = 1 if stream else sys.maxsize
    return {} if limit is None else {"memory_limit": limit}
