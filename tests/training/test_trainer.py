import math
import signal

import pytest
import torch
from tests.training.step_contract import weights_equal
from torch import nn
from torch.testing import assert_close

from ansatz.data import Batch, TensorSource
from ansatz.errors import DataError, NumericalError, UsageError
from ansatz.likelihoods import Normal
from ansatz.training import Callback, GradientStep, Interrupted, Loss, Supervised, Trainer
from ansatz.training.run import snapshot


def make_step(seed=0, dropout=0.0, rate=0.05, **options):
    torch.manual_seed(seed)
    network = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Dropout(dropout), nn.Linear(8, 1))
    optimizer = torch.optim.Adam(network.parameters(), lr=rate)
    return GradientStep(network, Supervised(Normal(dispersion=1.0)), optimizer, **options)


def make_rows(count=23, seed=1):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(count, 2, generator=generator)
    return Batch.of(x, x[:, 0] * x[:, 1])


def make_source(batch_size=5, **options):
    return TensorSource(make_rows(), batch_size, **options)


def trainer(**options):
    return Trainer(**{"progress": 0, "device": "cpu", **options})


class Scripted:
    """A step whose weight is the number of its updates, and whose loss follows a script."""

    def __init__(self, script):
        self.network, self.objective = nn.Linear(1, 1, bias=False), nn.Identity()
        nn.init.zeros_(self.network.weight)
        self.script = script

    def step(self, batch):
        with torch.no_grad():
            self.network.weight += 1
        return {"loss": 1.0}

    def evaluate(self, batch):
        loss = torch.tensor(self.script[int(self.network.weight) - 1])
        return Loss(loss, torch.tensor(1.0))

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass

    @property
    def reached(self):
        return int(self.network.weight)


ONE = TensorSource(Batch.of(torch.zeros(1, 1), torch.zeros(1)), 1)  # one batch an epoch


def test_it_is_a_hand_written_loop_bit_for_bit():
    source, step = make_source(seed=4), make_step()
    trainer(epochs=3).fit(step, source)

    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Dropout(0.0), nn.Linear(8, 1))
    optimizer = torch.optim.Adam(network.parameters(), lr=0.05)
    likelihood = Normal(dispersion=1.0)
    for epoch in range(3):
        for batch in source.batches(epoch):
            optimizer.zero_grad()
            likelihood.loss(network(*batch.inputs), batch.target).mean().backward()
            optimizer.step()
    weights_equal(dict(step.network.state_dict()), dict(network.state_dict()))


def test_validation_weights_a_short_last_batch_and_sample_weights_as_one_big_batch_would():
    rows = make_rows()
    rows = rows._replace(weight=torch.rand(23) * 3)
    step = make_step()
    history = trainer(epochs=2).fit(step, make_source(), TensorSource(rows, 5))
    terms = step.objective.terms(step.network, rows).detach()
    expected = float((terms * rows.weight).sum() / rows.weight.sum())
    assert history.best_loss == pytest.approx(expected, rel=1e-12)


def test_fit_and_evaluate_report_the_same_number_on_the_same_data():
    source = make_source()
    step = make_step(dropout=0.5)
    history = trainer(epochs=3, evaluate_train=True).fit(step, source, source)
    assert history.losses("train_loss") == history.losses("valid_loss")
    # The running loss is another thing: with dropout, while the weights move.
    assert history.losses("running_loss") != history.losses("valid_loss")


def test_the_running_loss_is_the_mean_over_the_outcomes_of_the_period():
    step, seen = make_step(), []

    class Listen(Callback):
        def on_step(self, run, logs):
            seen.append((logs["loss"], logs["count"]))

    history = trainer(epochs=1, callbacks=[Listen()]).fit(step, make_source())
    mean = sum(loss * count for loss, count in seen) / 23
    assert history.records[0]["running_loss"] == pytest.approx(mean, rel=1e-12)
    assert [count for _, count in seen] == [5, 5, 5, 5, 3]


class TestTheBestWeightsComeBack:
    script = (5.0, 3.0, 1.0, 2.0, 4.0, 6.0)

    def fit(self, **options):
        step, script = Scripted(self.script), options.pop("script", self.script)
        step.script = script
        used = trainer(**options)
        try:
            used.fit(step, ONE, ONE)
        except (Interrupted, NumericalError):
            pass
        return step, used.history

    def test_when_the_budget_ends(self):
        step, history = self.fit(epochs=6)
        assert step.reached == 3 == history.best_step
        assert (history.best_loss, history.stop_reason, history.steps) == (1.0, "epochs", 6)

    def test_when_patience_ends(self):
        step, history = self.fit(epochs=6, patience=2)
        assert (step.reached, history.stop_reason, history.steps) == (3, "patience", 5)

    def test_when_time_ends(self, monkeypatch):
        class Clock(Callback):
            """A step takes a second."""

            now = 0.0

            def monotonic(self):
                return self.now

            def on_step(self, run, logs):
                self.now = float(run.number)

        clock = Clock()
        monkeypatch.setattr("ansatz.training.loop.time", clock)
        step, history = self.fit(epochs=6, time_limit=4.5, callbacks=[clock])
        assert (step.reached, history.stop_reason, history.steps) == (3, "time limit", 5)
        assert history.seconds == 5.0

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_when_a_signal_comes(self, number):
        class Press(Callback):
            def on_step(self, run, logs):
                if run.number == 5:
                    signal.raise_signal(number)

        step, history = self.fit(epochs=6, callbacks=[Press()])
        assert (step.reached, history.stop_reason, history.steps) == (3, "interrupted", 5)

    def test_when_a_callback_says_stop(self):
        class Stop(Callback):
            def on_evaluation(self, run, record):
                if record["step"] == 4:
                    run.stop("seen enough")

        step, history = self.fit(epochs=6, callbacks=[Stop()])
        assert (step.reached, history.stop_reason, history.steps) == (3, "seen enough", 4)

    def test_when_the_validation_loss_is_not_finite(self):
        step, history = self.fit(epochs=6, script=(5.0, 3.0, 4.0, math.nan))
        assert (step.reached, history.stop_reason) == (2, "numerical failure")

    def test_when_a_step_fails(self):
        step = Scripted(self.script)

        class Break(Callback):
            def on_step(self, run, logs):
                if run.number == 5:
                    raise OSError("something else")

        with pytest.raises(OSError, match="something else"):
            trainer(epochs=6, callbacks=[Break()]).fit(step, ONE, ONE)
        assert step.reached == 3


def test_without_validation_data_the_last_weights_stay():
    step = Scripted(())
    history = trainer(steps=4).fit(step, ONE)
    assert (step.reached, history.best_step, history.best_loss) == (4, 4, None)


def test_the_objectives_own_parameters_come_back_with_the_weights():
    torch.manual_seed(0)
    network, objective = nn.Linear(2, 1), Supervised(Normal(dispersion="constant"))
    rule = torch.optim.SGD([*network.parameters(), *objective.parameters()], lr=0.8)
    step = GradientStep(network, objective, rule)
    seen = {}

    class Keep(Callback):
        def on_evaluation(self, run, record):
            seen[run.number] = snapshot(step)

    history = trainer(epochs=10, callbacks=[Keep()]).fit(step, make_source(), make_source())
    weights_equal(snapshot(step), seen[history.best_step])


def test_a_failing_step_leaves_the_last_finite_weights_and_says_where():
    step = make_step()
    step.optimizer = torch.optim.SGD(step.network.parameters(), lr=1e6)
    used = trainer(epochs=100)
    with pytest.raises(NumericalError, match=r"at step \d+: .*rows? \d+.*not applied"):
        used.fit(step, make_source())
    assert used.history.stop_reason == "numerical failure"
    assert all(p.isfinite().all() for p in step.network.parameters())


def test_the_exponential_average_is_the_recursion_and_is_what_is_evaluated_and_kept():
    weights = []

    class Follow(Callback):
        def on_step(self, run, logs):
            weights.append(snapshot(run.step))

    step, source = make_step(), make_source()
    start = snapshot(step)
    history = trainer(epochs=3, average="ema", callbacks=[Follow()]).fit(step, source)
    average = start
    for t, new in enumerate(weights):
        decay = min(0.999, (1 + t) / (10 + t))
        average = {n: decay * average[n] + (1 - decay) * new[n] for n in new}
    assert_close(snapshot(step), average, rtol=1e-12, atol=1e-13)

    step = make_step()
    history = trainer(epochs=3, average="ema").fit(step, source, source)
    assert history.records[-1]["best"]
    assert_close(snapshot(step), average, rtol=1e-12, atol=1e-13)
    loss = step.evaluate(make_rows())
    assert history.best_loss == pytest.approx(float(loss.total / loss.count), rel=1e-12)


def test_stochastic_weight_averaging_is_the_mean_over_the_last_quarter():
    weights = []

    class Follow(Callback):
        def on_step(self, run, logs):
            weights.append(snapshot(run.step))

    step = make_step()
    trainer(steps=16, average="swa", callbacks=[Follow()]).fit(step, make_source())
    mean = {n: torch.stack([w[n] for w in weights[12:]]).mean(0) for n in weights[0]}
    assert_close(snapshot(step), mean, rtol=1e-12, atol=1e-13)


def test_averaging_does_not_disturb_the_path_of_the_weights():
    one, other = make_step(), make_step()
    paths = ([], [])

    class Follow(Callback):
        def __init__(self, path):
            self.path = path

        def on_step(self, run, logs):
            self.path.append(logs["loss"])

    source = make_source()
    trainer(epochs=3, callbacks=[Follow(paths[0])]).fit(one, source, source)
    trainer(epochs=3, average="ema", callbacks=[Follow(paths[1])]).fit(other, source, source)
    assert paths[0] == paths[1]


def test_the_users_random_state_is_left_alone_and_has_no_influence():
    results = []
    for seed in (1, 2):
        step = make_step(dropout=0.5)
        torch.manual_seed(seed)
        before = torch.get_rng_state()
        trainer(epochs=2, seed=9).fit(step, make_source())
        assert torch.equal(before, torch.get_rng_state())
        results.append(snapshot(step))
    weights_equal(*results)


def test_another_seed_drops_other_units():
    results = []
    for seed in (1, 2):
        step = make_step(dropout=0.5)
        trainer(epochs=2, seed=seed).fit(step, make_source())
        results.append(step.network[0].weight.detach().clone())
    assert not torch.equal(*results)


def test_how_often_it_is_evaluated_does_not_change_the_weights():
    results = []
    for every in (1, 3, 100):
        step = make_step(dropout=0.5)
        trainer(steps=12, evaluate_every=every).fit(step, make_source())
        results.append(snapshot(step))
    weights_equal(results[0], results[1])
    weights_equal(results[0], results[2])


@pytest.mark.parametrize(
    "budget, steps, reason",
    [
        ({"epochs": 2}, 10, "epochs"),
        ({"steps": 7}, 7, "steps"),
        ({"epochs": 2, "steps": 7}, 7, "steps"),
        ({"epochs": 1, "steps": 7}, 5, "epochs"),
    ],
)
def test_the_smaller_budget_counts(budget, steps, reason):
    history = trainer(**budget).fit(make_step(), make_source(), make_source())
    assert (history.steps, history.epochs, history.stop_reason) == (steps, steps // 5, reason)
    assert history.records[-1]["step"] == steps  # the end is always evaluated


def test_threads_are_chosen_for_the_fit_and_given_back():
    seen = []

    class Look(Callback):
        def on_step(self, run, logs):
            seen.append(torch.get_num_threads())

    torch.set_num_threads(2)
    try:
        trainer(steps=1, callbacks=[Look()]).fit(make_step(), make_source())
        trainer(steps=1, threads=2, callbacks=[Look()]).fit(make_step(), make_source())
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)
    assert seen == [1, 2]


def test_callbacks_hear_of_everything_in_order():
    heard = []

    class Diary(Callback):
        def on_start(self, run):
            heard.append(("start", run.number))

        def on_step(self, run, logs):
            heard.append(("step", run.number))

        def on_evaluation(self, run, record):
            heard.append(("evaluation", record["step"]))

        def on_end(self, run, history):
            heard.append(("end", history.stop_reason))

    trainer(steps=3, evaluate_every=2, callbacks=[Diary()]).fit(make_step(), make_source())
    assert heard == [
        ("start", 0),
        ("step", 1),
        ("step", 2),
        ("evaluation", 2),
        ("step", 3),
        ("evaluation", 3),
        ("end", "steps"),
    ]


def test_a_schedule_that_listens_hears_each_validation_loss():
    class Plateau:
        def __init__(self):
            self.heard = []

        def __call__(self, number):
            return 1.0

        def observe(self, value):
            self.heard.append(value)

    schedule = Plateau()
    step = make_step(schedule=schedule)
    history = trainer(epochs=3).fit(step, make_source(), make_source())
    assert schedule.heard == history.losses("valid_loss")


def test_what_happened_to_memory_is_noted_in_the_history():
    class Hungry(nn.Linear):
        def forward(self, x):
            if len(x) > 3:
                raise torch.OutOfMemoryError("CUDA out of memory")
            return super().forward(x)

    network = Hungry(2, 1)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    step = GradientStep(network, Supervised(Normal(dispersion=1.0)), optimizer)
    history = trainer(epochs=1).fit(step, make_source())
    assert len(history.notes) == 1 and "2 parts" in history.notes[0]


def test_half_precision_weights_on_this_cpu_are_refused_with_the_reason(monkeypatch):
    step = make_step()
    step.network.bfloat16()
    monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: False)
    with pytest.raises(UsageError, match=r"bfloat16.*90 to 100 times slower.*network.float\(\)"):
        trainer(epochs=1).fit(step, make_source())


@pytest.mark.parametrize(
    "options, words",
    [
        ({}, "give a budget"),
        ({"epochs": 0}, "epochs must be a whole number >= 1, got 0"),
        ({"steps": 2.5}, "steps must be a whole number >= 1, got 2.5"),
        ({"epochs": 1, "time_limit": -1}, "time_limit must be a positive"),
        ({"epochs": 1, "resume": True}, "resume needs checkpoint"),
        ({"epochs": 1, "on_checkpoint_error": "x"}, "'continue' or 'stop'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(options, words):
    with pytest.raises(UsageError, match=words):
        Trainer(**options)


def test_faults_that_show_at_fit_are_explained():
    with pytest.raises(UsageError, match="patience needs a validation source"):
        trainer(epochs=1, patience=1).fit(make_step(), make_source())
    with pytest.raises(UsageError, match="average must be 'ema', 'swa'"):
        trainer(epochs=1, average="mean").fit(make_step(), make_source())
    with pytest.raises(UsageError, match="device must be one of"):
        trainer(epochs=1, device="tpu").fit(make_step(), make_source())
    empty = TensorSource(Batch.of(torch.zeros(0, 2), torch.zeros(0)), 5)
    with pytest.raises(DataError, match="no rows"):
        trainer(epochs=1).fit(make_step(), empty)


def test_nothing_is_printed_at_level_zero(capsys):
    trainer(epochs=2).fit(make_step(), make_source(), make_source())
    assert capsys.readouterr() == ("", "")
