"""Members of each axis, written as a user would: what the pipeline needs, and nothing else."""

import copy
import re
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import torch

from ansatz import likelihoods
from ansatz.data import row_keys
from ansatz.errors import DataError
from ansatz.fitting.contracts.inference import Fitted, Predictive
from ansatz.fitting.contracts.outcome import Outcome
from ansatz.fitting.job import take
from ansatz.fitting.joined_structure import JoinedRows, JoinedStructure
from ansatz.fitting.model import PointPosterior
from ansatz.fitting.scores import evaluate_predictive
from ansatz.fitting.tensor_structure import Read, TensorStructure
from ansatz.fitting.training import train
from ansatz.inference.ensemble_posterior import EnsemblePosterior
from ansatz.inference.member_training import member_folder
from ansatz.seeds import derive
from ansatz.spec import InputSpec, TargetSpec
from ansatz.structures.vector.rows import TableRows
from ansatz.symmetry import create as create_group


class Texts:
    """N texts."""

    spec, has_features = None, True

    def __init__(self, texts):
        self.texts = np.asarray(texts, dtype=object)

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, index):
        return Texts(self.texts[index])

    def content_keys(self, seed=0):
        return row_keys(pd.DataFrame({"text": self.texts}), seed=seed)

    def describe(self):
        return {"names": None, "count": 1, "columns": None}


class WordCounts:
    """log(1 + the count) of each word of the training texts."""

    dtype, notes, columns = torch.float64, [], ()

    def __init__(self, words):
        self.words = list(words)
        self.places = {word: k for k, word in enumerate(self.words)}

    @property
    def spec(self):
        return InputSpec.of(len(self.words))

    def inputs(self, rows, *, notes=None):
        counts = torch.zeros(len(rows), len(self.words), dtype=torch.float64)
        for row, text in enumerate(rows.texts):
            for word in re.findall(r"\w+", text.lower()):
                if word in self.places:
                    counts[row, self.places[word]] += 1
        return (counts.log1p(),)

    def state(self):
        return {"words": self.words}


class Bag(TensorStructure):
    """Texts as bags of words: their order carries no meaning."""

    name, unit = "bag", ("text", "texts")

    def read(self, data, column_roles, reader):
        frame = pd.read_csv(data) if isinstance(data, str | Path) else pd.DataFrame(data)
        return Read(str(data)[:40], Texts(frame.pop("text")), frame)

    def as_rows(self, X):
        return X if isinstance(X, Texts) else Texts(X)

    def encoder(self, rows, weight, recipe, options):
        words = {word for text in rows.texts for word in re.findall(r"\w+", text.lower())}
        return WordCounts(sorted(words))

    def load_encoder(self, state):
        return WordCounts(state["words"])

    def groups(self, spec, names=()):
        return [create_group("permutation", axes=(-1,))]


class TextsAndNumbers(JoinedStructure):
    """A text and some numbers in every example."""

    name, unit = "bag_and_numbers", ("review", "reviews")
    parts: ClassVar = {"words": "bag", "numbers": "vector"}

    def read(self, data, column_roles, reader):
        frame = pd.DataFrame(data)
        return Read("reviews", self.as_rows(frame), frame)

    def as_rows(self, X):
        if isinstance(X, JoinedRows):
            return X
        numbers = X[["length", "stars"]].to_numpy(dtype=np.float64)
        return JoinedRows({"words": Texts(X["text"]), "numbers": TableRows(numbers)})


class Percent(Outcome):
    """A percentage: the share is modelled, percent are predicted."""

    name, labels, candidates = "percent", None, ("beta",)
    estimator = "ansatz.estimators.estimator:Estimator"

    def __init__(self):
        self.names = []

    @classmethod
    def check_columns(cls, frame, column_roles, likelihood, options, *, named):
        if not frame[column_roles.target[0]].between(0, 100, inclusive="neither").all():
            raise DataError(
                f"column '{column_roles.target[0]}': percentages lie between 0 and 100."
            )

    def encode(self, y, settings, *, reset):
        if reset:
            self.names = [str(getattr(y, "name", "y"))]
        return np.asarray(y, dtype=np.float64) / 100, TargetSpec()

    def likelihood(self, settings, target, *, few):
        return likelihoods.create(settings.likelihood_name, **settings.likelihood_options)

    def evaluate(self, predictive, y, weight=None):
        found = evaluate_predictive(predictive, y, weight)
        return {
            name: 100 * value if name in ("rmse", "mae") else value for name, value in found.items()
        }

    def point(self, predictive):
        return 100 * predictive.likelihood.point(predictive.raw).numpy()

    def target(self, likelihood):
        return TargetSpec()

    def state(self):
        return {"names": self.names}

    def load(self, state, tensors):
        self.names = state["names"]


class Bootstrap:
    """Networks trained on rows drawn with replacement, mixed with equal weights."""

    name, averages, few, words = "bootstrap", True, 100.0, "a bootstrap of networks"

    def recipe(self, base, facts, options):
        return base.model_copy(update={"members": options.get("members") or 4, "holdout": 0.1})

    def fit(self, plan, job, likelihood, previous=None):
        encoder = plan.structure.encoder(job.rows, job.weight.numpy(), plan.recipe, plan.options)
        members, history = [], None
        for number in range(plan.recipe.members):
            seed = derive(plan.seed, "bootstrap", number)
            draws = np.random.default_rng(seed).integers(0, len(job.y), len(job.y))
            options = member_folder(dict(job.trainer_options), number)
            part = take(job, np.sort(draws))._replace(valid=None, trainer_options=options)
            done = train(plan._replace(seed=seed), part, likelihood, encoder=encoder)
            members.append(PointPosterior(plan.structure, encoder, done.trained, plan.options))
            history = done.history
        return Fitted(EnsemblePosterior(members, torch.ones(len(members))), history)


class Neighbours:
    """The constant model of the k nearest training rows: rows are kept, nothing is trained."""

    name, averages, few, words = "neighbours", False, 100.0, "nearest neighbours"

    def recipe(self, base, facts, options):
        return base

    def fit(self, plan, job, likelihood, previous=None):
        encoder = plan.structure.encoder(job.rows, job.weight.numpy(), plan.recipe, plan.options)
        (x,) = encoder.inputs(job.rows, notes=[])
        likelihood = copy.deepcopy(likelihood).double()
        likelihood.observe(job.y, job.weight)
        return Fitted(Nearest(encoder, likelihood, x, job.y))

    def rebuild(self, structure, encoder, record, tensors, build):
        likelihood = likelihoods.create(record["likelihood"], **record["options"]).double()
        own = {n[4:]: t for n, t in tensors.items() if n.startswith("likelihood.")}
        likelihood.load_state_dict(own, strict=False)
        return Nearest(encoder, likelihood, tensors["x"], tensors["y"])


class Nearest:
    """What the neighbours of a row say."""

    name, networks, keeps_rows, k = "neighbours", (), True, 9

    def __init__(self, encoder, likelihood, x, y):
        self.encoder, self.likelihood, self.x, self.y, self.options = encoder, likelihood, x, y, {}

    @property
    def parameters(self):
        return self.x.numel()

    def answer(self, inputs, offset=None):
        near = torch.cdist(inputs[0], self.x).topk(self.k, largest=False).indices
        ones = torch.ones(self.k, dtype=torch.float64)
        return torch.stack([self.likelihood.start(self.y[rows], ones)[0] for rows in near])

    def predictive(self, rows, offset=None, *, notes=None):
        return Predictive(self.likelihood, self.answer(self.encoder.inputs(rows, notes=notes)))

    def components(self, rows, offset=None):
        return [(1.0, self.predictive(rows, offset))]

    def without_recalibration(self):
        return self

    def tensors(self):
        likelihood = {f"likelihood.{name}": t for name, t in self.likelihood.state_dict().items()}
        return {"x": self.x, "y": self.y, **likelihood}

    def record(self):
        return {"likelihood": self.likelihood.name, "options": self.likelihood.options}
