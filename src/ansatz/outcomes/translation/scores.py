"""How near translations come to what people wrote: BLEU and chrF, by sacrebleu."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ansatz.errors import UsageError


def corpus_scores(found: Sequence[str], references: Sequence[str]) -> dict[str, float | None]:
    r"""BLEU and chrF of a corpus (0 to 100, cased, sacrebleu's defaults), and the exact share.

    .. math:: \text{BLEU} = 100 \min(1, e^{1 - r / c}) \Bigl(\prod_{n=1}^4 p_n\Bigr)^{1/4}

    with :math:`p_n` the share of the n-grams that the reference holds too, r and c the lengths of
    references and translations.

    Args:
        found: translations.
        references: one for each.

    References:
        Papineni et al. (2002), BLEU. https://aclanthology.org/P02-1040
        Post (2018), A call for clarity in reporting BLEU scores. https://arxiv.org/abs/1804.08771
    """
    bleu, chrf = _metrics()
    exact = np.mean([a.split() == b.split() for a, b in zip(found, references, strict=True)])
    return {
        "bleu": float(bleu.corpus_score(list(found), [list(references)]).score),
        "chrf": float(chrf.corpus_score(list(found), [list(references)]).score),
        "exact": float(exact),
    }


def bootstrap(
    found: Sequence[str], references: Sequence[str], *, draws: int = 1_000, seed: int = 0
) -> dict[str, tuple[float, float]]:
    """The 95 % intervals of BLEU and chrF over texts drawn with replacement.

    Args:
        found: translations.
        references: one for each.
        draws: bootstrap samples.
        seed: of the draws.

    References:
        Koehn (2004), Statistical significance tests for machine translation evaluation.
        https://aclanthology.org/W04-3250
    """
    rows = np.random.default_rng(seed).integers(0, len(found), (draws, len(found)))
    intervals = {}
    for name, metric in zip(("bleu", "chrf"), _metrics(), strict=True):
        # The sums of a text's counts are those of the corpus: one pass over the texts is enough.
        counts = np.array(metric._extract_corpus_statistics(list(found), [list(references)]))
        totals = [counts[each].sum(0) for each in rows]
        scores = [metric._compute_score_from_stats(list(total)).score for total in totals]
        low, high = np.quantile(scores, [0.025, 0.975])
        intervals[name] = (float(low), float(high))
    return intervals


def _metrics() -> tuple[Any, Any]:
    try:
        from sacrebleu.metrics.bleu import BLEU
        from sacrebleu.metrics.chrf import CHRF
    except ImportError:
        raise UsageError(
            "BLEU and chrF need the package sacrebleu: pip install 'ansatz-learn[text]'."
        ) from None
    return BLEU(), CHRF()
