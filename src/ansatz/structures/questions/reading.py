"""Reads questions and answers: JSON as SQuAD has it."""

import json
from collections.abc import Mapping
from os import PathLike
from typing import Any

import pandas as pd

from ansatz.data.files import checked_path, read_bytes
from ansatz.data.sequences.questions import Questions
from ansatz.data.sequences.reading import decode
from ansatz.errors import DataError
from ansatz.fitting.column_roles import ColumnRoles
from ansatz.fitting.tensor_structure import Read

ANSWER = "answer"
Asked = tuple[str, str, list[tuple[str, int]], str]


def read_questions(data: Any, column_roles: ColumnRoles, reader: Mapping[str, Any]) -> Read:
    """Questions with their contexts and, where they are known, their answers."""
    if not isinstance(data, str | PathLike):
        raise DataError("questions are read from a JSON file; in Python: SpanFinder().fit(...).")
    text = decode(read_bytes(checked_path(data)), data, reader.get("encoding"))
    asked, notes = _asked(text, str(data)), []
    contexts, questions = [each[0] for each in asked], [each[1] for each in asked]
    answers, names = [each[2] for each in asked], [each[3] for each in asked]
    if not asked:
        raise DataError(f"{data} holds no questions.")
    known = [bool(each) for each in answers]
    frame = pd.DataFrame({"question": questions})
    target = "".join(sorted({name for name in column_roles.target})) or ANSWER
    if not any(known):
        return Read(str(data), Questions(contexts, questions), frame, target, ())
    if not all(known):
        notes.append(f"questions without an answer: {known.count(False):,} of {len(known):,}.")
    first = [each or [(_any_word(context), context.find(_any_word(context)))]
             for each, context in zip(answers, contexts, strict=True)]  # fmt: skip
    try:
        rows = Questions.of(contexts, questions, first, names)
    except DataError as error:
        raise DataError(f"{data}, {error}") from None
    assert rows.spans is not None
    places = [tuple(span) if is_known else None for span, is_known in zip(
        rows.spans.tolist(), known, strict=True
    )]  # fmt: skip
    frame[target] = pd.Series(places, dtype=object)
    return Read(str(data), rows, frame, target, tuple(notes))


def _asked(text: str, origin: str) -> list[Asked]:
    """(context, question, answers, name) of each question."""
    try:
        document = json.loads(text)
    except ValueError as error:
        raise DataError(f"{origin} is not JSON: {error}.") from None
    found: list[Asked] = []
    try:
        for article in document["data"]:
            for paragraph in article["paragraphs"]:
                for asked in paragraph["qas"]:
                    answers = [
                        (a["text"], int(a["answer_start"])) for a in asked.get("answers", ())
                    ]
                    name = str(asked.get("id", len(found)))
                    found.append((paragraph["context"], asked["question"], answers, name))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise DataError(
            f"{origin}: expected SQuAD's JSON, data > paragraphs > context and qas with question "
            f"and answers (text, answer_start); question {len(found) + 1}: {error!r}."
        ) from None
    return found


def _any_word(context: str) -> str:
    return next(iter(context.split()), "?")
