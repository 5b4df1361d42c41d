import builtins
import warnings

import pytest
import torch
from torch import nn

from ansatz.data import Batch, TensorSource
from ansatz.errors import MissingExtraError
from ansatz.likelihoods import Normal
from ansatz.training import GradientStep, Supervised, Trainer


def fit(**options):
    network = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
    step = GradientStep(network, Supervised(Normal(dispersion=1.0)), optimizer)
    source = TensorSource(Batch.of(torch.randn(8, 2), torch.randn(8)), 2)
    return Trainer(progress=0, device="cpu", **options).fit(step, source, source)


def test_the_log_holds_every_number_of_every_record(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tensorboard's own
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        history = fit(epochs=3, tensorboard=tmp_path)
        log = EventAccumulator(str(tmp_path)).Reload()
    for name in ("valid_loss", "running_loss", "rate"):
        points = log.Scalars(name)
        assert [point.step for point in points] == history.losses("step")
        assert [point.value for point in points] == pytest.approx(history.losses(name), rel=1e-6)


def test_without_the_package_the_extra_is_named(tmp_path, monkeypatch):
    load = builtins.__import__

    def refuse(name, *rest):
        if name.startswith("torch.utils.tensorboard"):
            raise ImportError(name)
        return load(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingExtraError, match=r"TensorBoard logs need.*ansatz-learn\[tb\]"):
        fit(epochs=1, tensorboard=tmp_path)
