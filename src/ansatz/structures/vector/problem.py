"""A table read as a question: which columns are features, what kind of quantity is the target."""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ansatz import data as ansatz_data
from ansatz import likelihoods, outcomes
from ansatz.data import Column, as_frame, find_leaks, infer_columns, read_table
from ansatz.data.columns import plain_columns
from ansatz.data.dates import as_dates
from ansatz.data.grids import is_grids
from ansatz.data.grids.path_table import image_columns
from ansatz.data.numeric import refuse_infinite
from ansatz.data.streams.available import reason_to_stream
from ansatz.data.validation_table import PART, append_validation, frame_of_pair
from ansatz.errors import DataError, UsageError
from ansatz.fitting.column_roles import ColumnRoles, is_numeric, near_columns
from ansatz.fitting.problem import Problem, check_outcomes, outcome_of
from ansatz.fitting.proposal import Proposal, propose
from ansatz.fitting.request import Request
from ansatz.structures.vector.rows import TableRows


def build_problem(
    data: Any,
    column_roles: ColumnRoles,
    *,
    likelihood: str | None = None,
    options: Mapping[str, Any] | None = None,
    roles: Mapping[str, str] | None = None,
    drop: Sequence[str] = (),
    reader: Mapping[str, Any] | None = None,
) -> Problem:
    """Reads a table and decides what each column is for."""
    words = {*drop, *(name for name, role in (roles or {}).items() if role != "numeric")}
    reader = dict(reader or {})
    validation = frame_of_pair(reader.pop("validation_data", None), column_roles.target)
    origin, frame, notes = _open(data, reader, words)
    part = None
    if validation is not None:
        is_file = isinstance(validation, str | Path)
        place, more, said = _open(validation, reader if is_file else {}, words)
        place = place if is_file else "validation_data"
        frame, part = append_validation(frame, place, more), PART
        notes += [*said, f"{len(more)} rows of {place} stop the training."]
    for name in drop:
        if name not in frame.columns:
            raise UsageError(f"{origin}: no column '{name}' to drop. {near_columns(name, frame)}")
    frame = frame.drop(columns=list(drop))
    column_roles = column_roles.expand(frame)
    column_roles.check(frame, origin)
    _refuse_infinite(origin, column_roles.features(frame))
    column_roles, frame, spelled = spell_roles(origin, frame, column_roles, likelihood)
    notes += spelled
    frame, more = _known_outcomes(origin, frame, column_roles, likelihood)
    given = dict(options or {})
    asked = column_roles.task and outcomes.registry.get(column_roles.task)
    if likelihood:
        proposal = Proposal([likelihood])
    elif asked and asked.is_x:
        proposal = Proposal(list(asked.candidates))
    else:
        proposal = propose(origin, frame, column_roles)
    candidates, given = proposal.candidates, {**proposal.options, **given}
    check_outcomes(origin, frame, column_roles, candidates[0], given, named=likelihood is not None)
    features = column_roles.features(frame).drop(columns=part or [])
    if column_roles.strata is not None:
        roles = {**(roles or {}), column_roles.strata: "stratum"}
    roles = {**(roles or {}), **dict.fromkeys(column_roles.grouping_columns, "group")}
    columns = infer_columns(features, roles=roles or {})
    features, frame = plain_columns(features, columns), plain_columns(frame, columns)
    notes += spelling_notes(columns)
    _check_time(origin, frame, column_roles)
    why = [proposal.why] if proposal.why else []
    if column_roles.entry is not None and frame[column_roles.entry].isna().any():
        early = int(frame[column_roles.entry].isna().sum())
        why.append(
            f"rows without a value of '{column_roles.entry}', watched from the start: {early}."
        )
    notes += [*more, *why, *table_warnings(frame, column_roles, columns, candidates[0])]
    return Problem(
        origin,
        frame,
        TableRows(features, columns, formula=column_roles.formula),
        column_roles,
        candidates,
        given,
        notes,
        _fingerprint(frame),
        part=part,
        columns=columns,
    )


def refuse_images(data: Any) -> None:
    """Refuses a folder of images, which is not a table."""
    if isinstance(data, str | Path) and Path(data).is_dir() and is_grids(data):
        raise UsageError(f"{data} is a folder of images, not a table: leave out --x vector.")


def _open(
    data: Any, reader: Mapping[str, Any], words: Collection[str]
) -> tuple[str, pd.DataFrame, list[str]]:
    """The table; columns among ``words`` need not hold numbers even if they begin like that."""
    named = isinstance(data, str) and data in ansatz_data.names() and not Path(data).exists()
    if reader and (named or not isinstance(data, str | Path)):
        raise UsageError(f"{', '.join(reader)}: only for files that are read; these data are not.")
    if isinstance(data, str | Path):
        if named:
            return str(data), ansatz_data.load(str(data)).frame, []
        table = read_table(data, **{"text": words, **reader})
        return table.origin, table.frame, list(table.notes)
    frame = as_frame(data)
    frame.columns = [str(name) for name in frame.columns]
    return "the table", frame, []


def _refuse_infinite(origin: str, features: pd.DataFrame) -> None:
    """Before rows are left out or split: the error counts them as the file does."""
    names = [name for name in features.columns if is_numeric(features[name])]
    try:
        refuse_infinite(features[names].to_numpy(dtype=np.float64), names)
    except DataError as error:
        raise DataError(f"{origin}: {error}") from None


def spell_roles(
    origin: str, frame: pd.DataFrame, column_roles: ColumnRoles, likelihood: str | None
) -> tuple[ColumnRoles, pd.DataFrame, list[str]]:
    """Reads targets, weights and so on as numbers where their text spells numbers."""
    kind = None if likelihood is None else outcome_of(likelihood, column_roles)
    target = kind is None or outcomes.registry.get(kind).is_quantity
    try:
        column_roles = column_roles.find_spellings(frame, target=target)
    except DataError as error:
        raise DataError(f"{origin}, {error}") from None
    said = [
        f"column '{name}': read as {rule.note}." for name, rule in column_roles.spellings.items()
    ]
    return column_roles, column_roles.plain(frame), said


def spelling_notes(columns: Sequence[Column]) -> list[str]:
    """Notes on columns of text that were read as numbers or dates."""
    return [f"column '{c.name}': read as {c.note}." for c in columns if c.spelling is not None]


def _check_time(origin: str, frame: pd.DataFrame, column_roles: ColumnRoles) -> None:
    if column_roles.time is None or is_numeric(frame[column_roles.time]):
        return
    try:
        as_dates(frame[column_roles.time])
    except DataError as error:
        raise DataError(f"{origin}: --time: {error}") from None


def _known_outcomes(
    origin: str, frame: pd.DataFrame, column_roles: ColumnRoles, likelihood: str | None
) -> tuple[pd.DataFrame, list[str]]:
    kind = outcomes.DEFAULT if likelihood is None else outcome_of(likelihood, column_roles)
    known = outcomes.registry.get(kind).known(frame, column_roles)
    name = column_roles.outcome_name
    if not known.any():
        raise DataError(f"{origin}: the target '{name}' is missing in every row.")
    if known.all():
        return frame, []
    gone = int((~known).sum())
    left_out = "1 row" if gone == 1 else f"{gone} rows"
    was = "was" if gone == 1 else "were"
    return frame[known], [f"{left_out} without a value of '{name}' {was} left out."]


def table_warnings(
    frame: pd.DataFrame, column_roles: ColumnRoles, columns: list[Column], likelihood: str
) -> list[str]:
    """Warns of columns that name images or give the target away, and of odd targets."""
    warnings = [
        f"column '{name}' names images, which take no part: to train on them, --image {name}."
        for name in image_columns(frame)
    ]
    warnings += [
        f"column '{column.name}': {column.note}; to read it as text: --text {column.name}."
        for column in columns
        if column.role == "categorical" and column.note and _are_words(column.levels)
    ]
    kind = outcomes.registry.get(outcome_of(likelihood, column_roles))
    if kind.has_columns:
        warnings += find_leaks(
            frame, column_roles.target, columns, group=column_roles.group, time=column_roles.time
        )
    link = likelihoods.registry.get(likelihood).link_name
    if column_roles.exposure is not None and link == "identity":
        warnings.append(
            f"the exposure '{column_roles.exposure}' adds its logarithm to the mean, as the link "
            f"of {likelihood} is the identity; for rates take a likelihood with a log link, like "
            "poisson or gamma."
        )
    for name in column_roles.target:
        if (
            kind.is_quantity
            and is_numeric(frame[name])
            and len(frame) > 1
            and frame[name].nunique() == 1
        ):
            value = frame[name].iloc[0]
            warnings.append(f"the target '{name}' is {value:g} in every row: nothing to explain.")
    return warnings


def _are_words(levels: Sequence[str]) -> bool:
    """Tests whether the levels are of two words on average."""
    some = [str(level) for level in levels[:1000]]
    return bool(some) and sum(len(level.split()) for level in some) >= 2 * len(some)


def _fingerprint(frame: pd.DataFrame) -> str:
    digest = hashlib.sha256()
    digest.update("\x1f".join(f"{name}:{frame[name].dtype}" for name in frame.columns).encode())
    digest.update(pd.util.hash_pandas_object(frame, index=False).to_numpy().tobytes())
    return digest.hexdigest()


def why_a_stream(request: Request) -> str | None:
    """Says why the rows are not read at once; None where they are."""
    data, options = request.data, request.options
    if options["validation_data"] is not None:
        if options["stream"]:
            raise UsageError("--validation takes all rows at once: leave out --stream.")
        return None
    named = isinstance(data, str) and data in ansatz_data.names() and not Path(data).exists()
    if options["formula"] is not None:
        if options["stream"]:
            raise UsageError("a formula takes all rows at once: leave out --stream.")
        return None
    if named or not isinstance(data, str | Path):
        if options["stream"]:
            raise UsageError("--stream is for files; these data are in memory already.")
        return None
    return reason_to_stream(data, stream=options["stream"], memory_limit=options["memory_limit"])
