"""Language models: the probability of the next token."""

from collections.abc import Iterator, Sequence
from typing import Any, Self, Unpack

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike, NDArray

from ansatz.data.sequences.spelling import text_of
from ansatz.errors import UsageError
from ansatz.estimators.arguments import Arguments
from ansatz.estimators.estimator import Estimator
from ansatz.fitting.job import Job, make_job
from ansatz.fitting.task import Task
from ansatz.likelihoods import Likelihood
from ansatz.networks import generate, stream_tokens
from ansatz.outcomes.continuation import Continuation

_OF_TABLES = (
    *("calibration", "x", "widths", "activation", "dropout", "quantile", "bins", "augment"),
    *("errors", "formula", "impute", "link", "folds"),
)


class LanguageModel(Estimator, without=_OF_TABLES):
    r"""A network that predicts each token of a text from those before it.

    .. math:: \log p(w_1, \dots, w_T) = \sum_t \log p(w_t \mid w_1, \dots, w_{t-1})

    Args:
        likelihood: ``"categorical"``.
        network: ``"mingru"``, ``"gpt"``, ``"lstm"``, ``"gru"``, ``"lru"``, ``"minlstm"``, ``"rnn"``
            or ``"ngram"`` (interpolated Kneser-Ney, which counts); ``"auto"`` takes mingru.
        tokens: ``"char"``, ``"byte"``, ``"bpe"``, ``"word"`` or ``"wordpiece"``; characters below
            10 million of them, else bpe, if not given.
        vocabulary: different tokens at most; 4,096 if not given.
        length: tokens that a network reads at once; 128 if not given.
        holdout: share of the text, at its end, that decides when to stop; 0.1 if not given.

    Example:
        >>> from ansatz import LanguageModel
        >>> model = LanguageModel(network="ngram").fit(["to be or not to be " * 20])
        >>> model.generate("to be or", 11)
        ' not to be '

    References:
        Feng et al. (2024), Were RNNs all we needed? https://arxiv.org/abs/2410.01201
    """

    outcome = "language"
    x = "passage"

    def __init__(
        self, likelihood: str | Likelihood = "categorical", **options: Unpack[Arguments]
    ) -> None:
        super().__init__(likelihood, **options)

    def fit(self, X: Any, y: Any = None, **options: Any) -> Self:  # type: ignore[override]
        """Fits the network to texts.

        Args:
            X: a list of texts; a single one for one long text.
            y: refused: the next token is the outcome.
            options: of the fit of any estimator; none applies.
        """
        if y is not None or any(value is not None for value in options.values()):
            raise UsageError("a language model is fitted to texts alone: fit(texts).")
        return self._fit(*self._begin(_documents(X), None))

    def _job(
        self,
        task: Task,
        X: Any,
        y: Any,
        *others: Any,
        reset: bool,
        fitting: bool = True,
        **more: Any,
    ) -> Job:
        rows: Any = task.structure.from_python(X, estimator=self, reset=reset)
        job = make_job(task, rows, rows, reset=reset, fitting=fitting)
        valid = np.flatnonzero(rows.part.numpy() == 1)
        return job._replace(valid=valid if len(valid) and not task.is_solved(job) else None)

    def evaluate(
        self,
        X: Any,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        *,
        offset: ArrayLike | None = None,
        warn: bool = True,
    ) -> dict[str, float | None]:
        """Computes nats per token, perplexity, bits per byte and accuracy.

        Args:
            X: texts.
            y: not needed.
            sample_weight: refused.
            offset: refused.
            warn: whether to warn of texts that the model was trained on.
        """
        rows: Any = self._given(_documents(X), offset).rows
        return super().evaluate(rows, rows, sample_weight, warn=warn)

    def surprise(self, text: str) -> pd.DataFrame:
        """Computes -log p of each token of a text in nats, given those before it.

        Args:
            text: a text.
        """
        rows: Any = self._given([text]).rows
        outcome: Any = self.model_.outcome
        frame = outcome.frame(self.model_, self._given(rows))
        return pd.DataFrame(frame)[["token", "surprise"]]

    def log_prob(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Computes log p of each text, the sum over its tokens.

        Args:
            texts: a list of texts.
        """
        if isinstance(texts, str):
            raise UsageError("log_prob takes a list of texts: log_prob([text]).")
        return np.array([-float(self.surprise(text)["surprise"].sum()) for text in texts])

    def generate(
        self,
        prompt: str = "",
        length: int = 200,
        *,
        temperature: float = 0.0,
        top_k: int = 0,
        top_p: float = 1.0,
        beams: int = 1,
        cache: bool = True,
        random_state: int = 0,
    ) -> str:
        """Continues a text.

        Args:
            prompt: the text to continue; nothing begins a new one.
            length: tokens at most.
            temperature: 0 takes the most probable token each time; 1 draws by the model.
            top_k: number of tokens to draw from; 0 for all.
            top_p: their least total probability.
            beams: above 1, the number of continuations that a beam search follows.
            cache: False reads the text anew for each token: the same result, slower.
            random_state: seed of the draws.
        """
        if beams == 1:
            given: dict[str, Any] = {"temperature": temperature, "top_k": top_k, "top_p": top_p}
            return "".join(
                self.stream(prompt, length, cache=cache, random_state=random_state, **given)
            )
        network: Any = Continuation(self.model_)
        found = generate(network, self.codes(prompt), length, temperature=temperature, beams=beams)
        return text_of(self._tokens, _until_end(found[0].tolist()))

    def stream(
        self,
        prompt: str = "",
        length: int = 200,
        *,
        temperature: float = 0.0,
        top_k: int = 0,
        top_p: float = 1.0,
        cache: bool = True,
        random_state: int = 0,
    ) -> Iterator[str]:
        """Continues a text and yields it as it grows.

        Args:
            prompt: as for :meth:`generate`, like the other arguments.
            length: tokens at most.
            temperature: 0 takes the most probable token.
            top_k: number of tokens to draw from.
            top_p: their least total probability.
            cache: whether to keep the network's state.
            random_state: seed of the draws.
        """
        network: Any = Continuation(self.model_)
        start, codes = self.codes(prompt), []
        before = text_of(self._tokens, start[0, 1:].tolist())
        steps = stream_tokens(
            network,
            start,
            length,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            end=0,
            cache=cache,
            generator=torch.Generator().manual_seed(random_state),
        )
        done = before
        for step in steps:
            if not int(step):
                return
            codes.append(int(step))
            text = text_of(self._tokens, [*start[0, 1:].tolist(), *codes])
            # A character of several bytes is shown when it is complete.
            if not text.endswith("\N{REPLACEMENT CHARACTER}") or int(step) == 1:
                yield text[len(done) :]
                done = text

    @property
    def _tokens(self) -> Any:
        encoder: Any = self.model_.encoder
        return encoder.tokens

    def codes(self, text: str) -> torch.Tensor:
        """Encodes the beginning of a document, ``(1, T)``.

        Args:
            text: its text.
        """
        found = self._tokens.encode([text]).values
        return torch.cat([found.new_zeros(1), found]).unsqueeze(0)


def _documents(X: Any) -> Any:
    return [X] if isinstance(X, str) else X


def _until_end(codes: list[int]) -> list[int]:
    return codes[: codes.index(0)] if 0 in codes else codes


def describe_unknown(model: LanguageModel, prompt: str) -> str | None:
    """Names the characters of a prompt that the training text does not have."""
    found = model.codes(prompt)[0, 1:]
    count = int((found == 1).sum())
    if not count:
        return None
    names = set(model._tokens.names)
    odd = [letter for letter in dict.fromkeys(prompt) if letter not in names]
    named = f": {', '.join(map(repr, odd[:5]))}" if odd and len(odd) <= 20 else ""
    return f"tokens of the prompt that the training text does not have: {count}{named}."
