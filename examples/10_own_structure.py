"""A structure of your own: texts as bags of words. Is a film review positive or negative?

Data: sentences from reviews, 5,331 of each kind (Pang and Lee 2005), in $ANSATZ_DATA/mr-polarity.
"""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from sklearn.feature_extraction.text import CountVectorizer

from ansatz import Classifier, structures
from ansatz.data import row_keys
from ansatz.fitting.tensor_structure import TensorStructure
from ansatz.spec import InputSpec


class Texts:
    """Rows: N texts that can be indexed by position."""

    spec, has_features = None, True

    def __init__(self, texts):
        self.texts = np.asarray(texts, dtype=object)

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, index):
        return Texts(self.texts[index])

    def content_keys(self, seed=0):  # equal texts have equal keys: duplicates stay in one split
        return row_keys(pd.DataFrame({"text": self.texts}), seed=seed)

    def describe(self):
        return {"names": None, "count": 1, "columns": None}


class WordCounts:
    """Encoder: log(1 + count) of the words that are frequent in the training texts."""

    dtype, notes, columns = torch.float64, [], ()

    def __init__(self, words):
        self.words, self.spec = list(words), InputSpec.of(len(words))

    def inputs(self, rows, *, notes=None):
        counts = CountVectorizer(vocabulary=self.words).transform(rows.texts).toarray()
        return (torch.as_tensor(counts, dtype=torch.float64).log1p(),)

    def state(self):
        return {"words": self.words}


class Bag(TensorStructure):
    """Reads nothing but text; training, prediction, baselines and reports are inherited."""

    name, unit = "bag", ("text", "texts")

    def as_rows(self, X):
        return X if isinstance(X, Texts) else Texts(X)

    def encoder(self, rows, weight, recipe, options):
        counts = CountVectorizer(min_df=5).fit(rows.texts)
        return WordCounts(counts.get_feature_names_out().tolist())

    def load_encoder(self, state):
        return WordCounts(state["words"])


structures.register("bag", Bag)

folder = Path(os.environ.get("ANSATZ_DATA", ".")) / "mr-polarity"
if not folder.is_dir():
    raise SystemExit(
        f"{folder} is missing: put rt-polarity.pos and rt-polarity.neg of the 'sentence polarity "
        "dataset v1.0' (Pang and Lee 2005) there, and set ANSATZ_DATA to the folder above."
    )
positive, negative = (
    (folder / f"rt-polarity.{end}").read_text(encoding="latin-1").splitlines()[:1200]
    for end in ("pos", "neg")
)
texts = np.array(positive + negative, dtype=object)
labels = np.repeat(["positive", "negative"], [len(positive), len(negative)])
order = np.random.default_rng(0).permutation(len(texts))
train, test = order[:2000], order[2000:]

for network in ("mlp", "linear"):
    model = Classifier(x="bag", network=network, random_state=0).fit(texts[train], labels[train])
    scores = model.evaluate(texts[test], labels[test])
    print(f"{network:>6}: accuracy {scores['accuracy']:.3f}, nll {scores['nll']:.3f}")

for text in ("a warm , funny and moving film .", "too long , too dull , and never funny ."):
    print(f"{model.predict([text])[0]}: {text}")
