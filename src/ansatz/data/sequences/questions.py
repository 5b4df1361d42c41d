"""Examples that are questions about a text that holds the answer."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ansatz.data.keys import mix, text_keys
from ansatz.data.sequences.sequences import Texts
from ansatz.errors import DataError
from ansatz.seeds import derive

_WORD = re.compile(r"\w+|[^\w\s]")
Span = tuple[int, int]


class Words(NamedTuple):
    """The words and signs of a text, in lower case, and where each begins and ends."""

    words: list[str]
    places: list[Span]


def words_of(text: str) -> Words:
    """Cuts a text into words and signs.

    Example:
        >>> from ansatz.data.sequences.questions import words_of
        >>> words_of("Who, Ada?").words
        ['who', ',', 'ada', '?']
    """
    found = list(_WORD.finditer(text))
    return Words([each[0].lower() for each in found], [each.span() for each in found])


class Questions:
    """N questions, each with a text that holds the answer.

    Args:
        contexts: texts.
        questions: one about each.
        answers: for each the texts that answer it, where these are known; the first is at its span.
        spans: ``(N, 2)`` the first and the last word of the first answer in its context.

    Example:
        >>> from ansatz.data.sequences.questions import Questions
        >>> rows = Questions.of(["Ada lives in Jena."], ["Where does Ada live?"], ["Jena"])
        >>> rows.spans.tolist(), rows.text(0, 3, 3)
        ([[3, 3]], 'Jena')
    """

    spec, has_features = None, True

    def __init__(
        self,
        contexts: Any,
        questions: Any,
        answers: Any = None,
        spans: NDArray[np.int64] | None = None,
    ) -> None:
        self.contexts, self.questions = Texts(contexts).texts, Texts(questions).texts
        if len(self.contexts) != len(self.questions):
            raise DataError(
                f"there are {len(self.contexts):,} contexts and {len(self.questions):,} "
                "questions: one for each."
            )
        self.answers, self.spans = answers, spans

    @classmethod
    def of(cls, contexts: Any, questions: Any, answers: Any, names: Any = None) -> "Questions":
        """Rows with answers: texts, or (first character, end) of each.

        Args:
            contexts: texts.
            questions: one about each.
            answers: a text, a (start, end) or a list of (text, start) for each.
            names: what errors call the questions.
        """
        made = cls(contexts, questions)
        if len(answers) != len(made):
            raise DataError(
                f"there are {len(made):,} questions and {len(answers):,} answers: one for each."
            )
        texts = np.empty(len(made), dtype=object)
        spans = np.zeros((len(made), 2), dtype=np.int64)
        for row, answer in enumerate(answers):
            name = row if names is None else names[row]
            given = _spelled(answer, made.contexts[row], name)
            texts[row] = [text for text, _ in given]
            spans[row] = _word_span(made.contexts[row], *given[0], name)
        made.answers, made.spans = texts, spans
        return made

    def __len__(self) -> int:
        return len(self.contexts)

    def __getitem__(self, index: Any) -> "Questions":
        answers, spans = self.answers, self.spans
        return Questions(
            self.contexts[index],
            self.questions[index],
            None if answers is None else answers[index],
            None if spans is None else spans[index],
        )

    def text(self, row: int, first: int, last: int) -> str:
        """The text of a context from one word to another."""
        context = self.contexts[row]
        places = words_of(context).places
        return str(context[places[first][0] : places[last][1]]) if places else ""

    def content_keys(self, seed: int = 0) -> NDArray[np.uint64]:
        """A hash of each question with its context."""
        both = [f"{q}\0{c}" for q, c in zip(self.questions, self.contexts, strict=True)]
        found: NDArray[np.uint64] = mix(text_keys(both) ^ np.uint64(derive(seed, "question")))
        return found

    def describe(self) -> dict[str, Any]:
        """Two features: question and context."""
        return {"names": None, "count": 2, "columns": None}


def _spelled(answer: Any, context: str, name: Any) -> list[tuple[str, int]]:
    """Answers with the character at which each begins; the words of the context decide."""
    if isinstance(answer, str):
        start = context.find(answer)
        if start < 0 or not answer.strip():
            raise DataError(f"question {name}: its answer {answer[:60]!r} is not in its context.")
        return [(answer, start)]
    if isinstance(answer, Sequence) and answer and isinstance(answer[0], Sequence):
        for text, start in answer:
            if not text.strip() or context[start : start + len(text)] != text:
                raise DataError(
                    f"question {name}: its answer {text[:60]!r} is not in its context at character "
                    f"{start}."
                )
        return list(answer)
    start, end = (int(place) for place in answer)
    if not 0 <= start < end <= len(context) or not context[start:end].strip():
        raise DataError(
            f"question {name}: no answer from character {start} to {end} in a context of "
            f"{len(context)}."
        )
    return [(context[start:end], start)]


def _word_span(context: str, text: str, start: int, name: Any) -> Span:
    """The first and the last word that an answer touches."""
    end, places = start + len(text), words_of(context).places
    touched = [k for k, (a, b) in enumerate(places) if a < end and b > start]
    if not touched:
        raise DataError(f"question {name}: its answer {text[:60]!r} holds no word.")
    return touched[0], touched[-1]
