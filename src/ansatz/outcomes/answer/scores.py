"""How near found answers come to the given ones: exact match and the F1 of their words."""

import re
import string
from collections import Counter
from collections.abc import Sequence

import numpy as np

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_SIGNS = str.maketrans("", "", string.punctuation)


def normal(text: str) -> list[str]:
    """The words of an answer in lower case, without articles and signs."""
    return _ARTICLES.sub(" ", text.lower().translate(_SIGNS)).split()


def word_f1(found: str, answer: str) -> float:
    """The harmonic mean of precision and recall of the words, each as often as it occurs.

    Example:
        >>> from ansatz.outcomes.answer.scores import word_f1
        >>> round(word_f1("the river Saale", "Saale"), 3)
        0.667
    """
    a, b = normal(found), normal(answer)
    if not a or not b:
        return float(a == b)
    common = sum((Counter(a) & Counter(b)).values())
    return 2 * common / (len(a) + len(b))


def answer_scores(
    found: Sequence[str], answers: Sequence[Sequence[str]]
) -> dict[str, float | None]:
    """Exact match and F1, each with the best of the given answers; means over questions.

    References:
        Rajpurkar et al. (2016), SQuAD, section 6.1. https://arxiv.org/abs/1606.05250
    """
    pairs = list(zip(found, answers, strict=True))
    exact = [max(float(normal(text) == normal(a)) for a in given) for text, given in pairs]
    f1 = [max(word_f1(text, a) for a in given) for text, given in pairs]
    return {"exact": float(np.mean(exact)), "f1": float(np.mean(f1))}
