"""Two processes are one: the same losses, the same decisions, the same errors."""

import json
import os
import signal
import subprocess
import sys

import filelock
import pytest
import torch
import torch.distributed as dist
from tests.training import distributed_run
from tests.training.distributed_run import SCRIPT, train

from ansatz.data.batch import take_rows
from ansatz.errors import NumericalError, ResourceError, UsageError
from ansatz.training import machine
from ansatz.training.machine import current_processes
from ansatz.training.processes.failure import LostProcess, ProcessError, ProcessFailure
from ansatz.training.processes.group import Processes, seconds_to_wait
from ansatz.training.processes.launch import Meeting, launch

LONG = {"trainer": {"steps": 200, "evaluate_every": 20}}
# 33 rows in batches of 16: the last batch of an epoch is one row, and one process has none.
SAME = {
    "gradient": {**LONG, "weighted": True},
    "analytic": {**LONG, "weighted": True, "step": "analytic"},
    "micro-batches": {"make": {"accumulate": 3}, "weighted": True},
    "an empty share": {"rows": 33},
    "an empty share, analytic": {"rows": 33, "step": "analytic"},
    "coupled rows": {"likelihood": "cox", "rows": 93},
    "coupled rows, analytic": {"likelihood": "cox", "rows": 93, "step": "analytic"},
    "early stopping": {"trainer": {"steps": 200, "patience": 2, "evaluate_every": 5}},
    "averaged": {"trainer": {"average": "ema"}},
}
DROPOUT = {"make": {"dropout": 0.2}}


def cases(folder):
    """Everything that leaves two processes on speaking terms, for one start of them."""

    def run(name, **trainer):
        place = {"checkpoint": str(folder / name), "resume": True, "checkpoint_every": 7}
        return {"trainer": {"evaluate_every": 5, **place, **trainer}}

    return [
        *SAME.items(),
        ("fsdp2", {"make": {"shard": True}, **run("fsdp2")}),
        ("fsdp2, half", {"make": {"shard": True}, **run("fsdp2-half", steps=20)}),
        ("fsdp2, resumed", {"make": {"shard": True}, **run("fsdp2-half", steps=40)}),
        ("dropout", DROPOUT),
        ("dropout, half", {**DROPOUT, **run("dropout", steps=20)}),
        ("dropout, resumed", {**DROPOUT, **run("dropout", steps=40)}),
        ("analytic dropout", {**DROPOUT, "step": "analytic"}),
        ("analytic dropout, half", {**DROPOUT, "step": "analytic", **run("masks", steps=20)}),
        ("analytic dropout, resumed", {**DROPOUT, "step": "analytic", **run("masks", steps=40)}),
        ("half by two", run("two", steps=20)),
        ("resumed from one", run("one", steps=40)),
        ("batch normalisation", {"make": {"norm": True}}),
        ("nan in one", {"fault": "nan"}),
        ("nan in one, analytic", {"fault": "nan", "step": "analytic"}),
        ("another seed", {"fault": "seed"}),
        ("another number of batches", {"fault": "count"}),
        ("stopped by one", {"trouble": "stop"}),
        ("terminated", {"trouble": "signal", **run("terminated", steps=40)}),
        ("newton", {"step": "newton"}),
        ("afterwards", {}),
        ("a callback", {"trouble": "callback"}),
    ]


def in_two_processes(named, folder):
    """The results of each process, by name, and how the processes ended."""
    command = [sys.executable, str(SCRIPT), json.dumps(named), str(folder)]
    ending = launch(command, 2)
    files = [folder / f"process-{rank}.json" for rank in range(2)]
    found = [json.loads(file.read_text()) for file in files if file.exists()]
    return {name: [results.get(name) for results in found] for name, _ in named}, ending


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """All cases, run once; several test workers share what came out."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder, record = shared / "two-processes", shared / "two-processes.json"
    with filelock.FileLock(shared / "two-processes.lock"):
        if not record.exists():
            folder.mkdir()
            before = torch.get_default_dtype()
            torch.set_default_dtype(torch.float64)
            place = {"checkpoint": str(folder / "one"), "resume": True, "checkpoint_every": 7}
            train({"trainer": {"steps": 20, "evaluate_every": 5, **place}})
            torch.set_default_dtype(before)
            found, ending = in_two_processes(cases(folder), folder)
            record.write_text(json.dumps({**found, "status": ending.status}))
    return {**json.loads(record.read_text()), "folder": folder}


def furthest(one, other):
    """The largest difference of the two runs' losses, and of their weights."""
    assert one["end"] == other["end"]
    pairs = [*zip(one["losses"], other["losses"], strict=True)]
    pairs += zip(one["valid"], other["valid"], strict=True)
    weights = [
        abs(a - b)
        for name in one["weights"]
        for a, b in zip(one["weights"][name], other["weights"][name], strict=True)
    ]
    return max(abs(a - b) for a, b in pairs), max(weights)


@pytest.mark.parametrize("name", SAME)
def test_two_processes_reproduce_the_losses_of_one(name, both):
    alone = train(SAME[name])
    for process in both[name]:
        losses, weights = furthest(alone, process)
        assert (
            losses < 1e-10 and weights < 1e-6
        )  # a Cox model's bias is free, and rounding moves it


def test_the_processes_hold_the_same_weights_to_the_last_bit(both):
    for name in (*SAME, "dropout", "analytic dropout", "batch normalisation"):
        first, second = both[name]
        assert first == second


def test_shards_train_as_the_whole_does(both):
    alone = train({"trainer": {"evaluate_every": 5, "steps": 40}})
    for process in both["fsdp2"]:
        assert max(furthest(alone, process)) < 1e-10


@pytest.mark.parametrize("name", ["fsdp2", "dropout", "analytic dropout"])
def test_a_run_in_two_parts_ends_as_the_whole_does_bit_for_bit(name, both):
    for whole, resumed in zip(both[name], both[f"{name}, resumed"], strict=True):
        assert resumed["weights"] == whole["weights"]
        assert resumed["valid"] == whole["valid"]
        assert resumed["losses"] == whole["losses"][20:]


@pytest.mark.filterwarnings("ignore:the run was made with processes")
def test_a_run_may_go_on_with_another_number_of_processes(both):
    alone = train({"trainer": {"evaluate_every": 5, "steps": 40}})
    place = {"checkpoint": str(both["folder"] / "two"), "resume": True, "checkpoint_every": 7}
    fewer = train({"trainer": {"evaluate_every": 5, "steps": 40, **place}})  # once: it ends there
    for resumed in (fewer, *both["resumed from one"]):
        assert resumed["losses"] == pytest.approx(alone["losses"][20:], abs=1e-12)
        assert resumed["valid"] == pytest.approx(alone["valid"], abs=1e-12)


@pytest.mark.parametrize("name", ["nan in one", "nan in one, analytic"])
def test_nan_in_one_process_stops_all_with_its_rows(name, both):
    first, second = both[name]
    assert first == second
    assert first["status"] == 6
    # 90 rows in batches of 16: epoch 1 begins at step 7, and its third batch is bad.
    assert "step 9" in first["message"] and "input column 1 is nan" in first["message"]


def test_processes_that_were_given_different_rows_refuse_to_begin(both):
    for process in both["another seed"]:
        assert process["status"] == 2 and "first batch" in process["message"]
    for process in both["another number of batches"]:
        assert "batches per epoch is 6 in process 0 and 5 in process 1" in process["message"]


def test_a_stop_in_one_process_stops_all_at_the_same_step(both):
    for process in both["stopped by one"]:
        assert process["end"][:2] == ["enough", 8]  # asked for in step 7, heard in step 8


def test_a_signal_to_one_process_ends_all_with_a_checkpoint(both):
    for process in both["terminated"]:
        assert process["status"] == 143 and "terminated after step 7" in process["message"]
    assert any((both["folder"] / "terminated").glob("step-*7"))


def test_a_step_that_cannot_add_up_gradients_says_so(both):
    for process in both["newton"]:
        assert process["status"] == 2 and "NewtonStep trains in one process" in process["message"]


def test_errors_that_all_raise_leave_the_processes_on_speaking_terms(both):
    alone = train({})
    for process in both["afterwards"]:
        assert max(furthest(alone, process)) < 1e-10


def test_what_one_process_raises_ends_the_others_with_its_message(both):
    first, second = both["a callback"]
    assert second["error"] == "ZeroDivisionError"
    assert first["message"] == "process 1: ZeroDivisionError: a callback of process 1"
    assert both["status"] == 1


def test_only_the_first_process_writes(both):
    names = {path.name for path in both["folder"].iterdir()}
    assert not [name for name in names if name.endswith(".lock")]
    assert {"one", "two", "fsdp2", "dropout", "masks"} <= names


# --- a process that is killed ---------------------------------------------------------------------


def by_torchrun(options, folder, restarts):
    """Two processes under torchrun; its exit status, and the results of those that lived."""
    command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    command += [f"--max-restarts={restarts}", str(SCRIPT), json.dumps([["run", options]])]
    ended = subprocess.run(
        [sys.executable, *command, str(folder)], capture_output=True, text=True, timeout=240
    )
    files = sorted(folder.glob("process-*.json"))
    return ended.returncode, [json.loads(file.read_text())["run"] for file in files]


@pytest.mark.slow
def test_after_a_kill_torchrun_restarts_and_the_run_ends_as_if_nothing_had_been(both, tmp_path):
    place = {"checkpoint": str(tmp_path / "run"), "resume": True, "checkpoint_every": 3}
    options = {"trouble": "kill", "trainer": {"steps": 40, "evaluate_every": 5, **place}}
    status, results = by_torchrun(options, tmp_path, restarts=1)
    assert status == 0
    for result, whole in zip(results, both["afterwards"], strict=True):
        assert result["weights"] == whole["weights"] and result["valid"] == whole["valid"]
        assert result["losses"] == whole["losses"][6:]  # killed in step 7, saved after step 6


@pytest.mark.slow
@pytest.mark.parametrize("shard", [False, True])
def test_after_the_last_restart_torchrun_gives_up(shard, tmp_path):
    options = {"trouble": "kill", "make": {"shard": shard}}
    status, results = by_torchrun(options, tmp_path, restarts=0)
    assert status != 0
    assert all(result["error"] in ("LostProcess", "Interrupted") for result in results)


@pytest.mark.slow
def test_shards_survive_a_kill_and_a_restart(tmp_path):
    place = {"checkpoint": str(tmp_path / "run"), "resume": True, "checkpoint_every": 3}
    options = {"trainer": {"steps": 40, "evaluate_every": 5, **place}, "make": {"shard": True}}
    status, results = by_torchrun({**options, "trouble": "kill"}, tmp_path, restarts=1)
    assert status == 0
    alone = train({"trainer": {"steps": 40, "evaluate_every": 5}})
    for result in results:
        assert result["valid"] == pytest.approx(alone["valid"], abs=1e-10)


def test_a_killed_process_ends_the_others_at_once(tmp_path):
    options = {"trouble": "kill", "step": "analytic"}  # torch's optimizers import its compiler
    found, ending = in_two_processes([["run", options]], tmp_path)
    assert ending.status == 5 and ending.killed == (1, signal.SIGKILL)
    assert found["run"][0]["error"] == "LostProcess"


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault, words",
    [("raise", "the disk of process 1 is gone"), ("short", "the processes see different batches")],
)
def test_a_source_that_fails_in_one_process_ends_all(fault, words, tmp_path):
    found, ending = in_two_processes([["run", {"fault": fault}]], tmp_path)
    assert ending.status != 0
    assert all(words in process["message"] for process in found["run"])


@pytest.mark.slow
def test_a_silent_process_is_given_up_in_time(tmp_path, monkeypatch):
    monkeypatch.setenv("ANSATZ_PROCESS_TIMEOUT", "3")
    found, ending = in_two_processes([["run", {"trouble": "sleep"}]], tmp_path)
    assert ending.status == 5
    assert "has not answered in time" in found["run"][0]["message"]


# --- one process ----------------------------------------------------------------------------------


def test_one_process_of_one_is_a_single_process_bit_for_bit(tmp_path):
    plain = train(DROPOUT)
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        assert current_processes() is None
        assert train(DROPOUT) == plain
    finally:
        dist.destroy_process_group()
        machine._opened = None


def test_a_child_of_a_process_is_not_one_of_the_processes(monkeypatch):
    for name, value in Meeting(2).environment(0).items():
        monkeypatch.setenv(name, value)
    assert machine.is_launched()
    place = f"127.0.0.1:{os.environ['MASTER_PORT']}"
    monkeypatch.setenv("ANSATZ_PROCESS", f"{os.getppid()} {place}")
    assert not machine.is_launched() and current_processes() is None
    monkeypatch.setenv("ANSATZ_PROCESS", f"{os.getppid()} 127.0.0.1:1")  # of another run
    assert machine.is_launched()


def test_a_port_in_use_is_explained(monkeypatch):
    meeting = Meeting(2)
    for name, value in meeting.environment(0).items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("TORCHELASTIC_USE_AGENT_STORE")
    with pytest.raises(ResourceError, match=rf"{meeting.port}\), is in use. Choose another"):
        current_processes()


def test_a_missing_network_interface_is_explained(monkeypatch):
    meeting = Meeting(2)
    for name, value in meeting.environment(0).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "nosuch7")
    with pytest.raises(ResourceError, match=r"no network interface 'nosuch7'.* It has .*lo"):
        current_processes()


def test_a_timeout_that_is_no_number_is_named(monkeypatch):
    monkeypatch.setenv("ANSATZ_PROCESS_TIMEOUT", "soon")
    with pytest.raises(UsageError, match=r"ANSATZ_PROCESS_TIMEOUT.*'soon'"):
        seconds_to_wait()


@pytest.mark.parametrize("rows", [0, 1, 2, 5, 16])
@pytest.mark.parametrize("size", [2, 3, 5])
def test_shares_are_all_rows_once_and_nearly_equal(rows, size):
    batch = take_rows(distributed_run.rows(16, "normal", False), slice(rows))
    shares = [Processes(rank, size).part(batch) for rank in range(size)]
    assert torch.equal(torch.cat([share.index for share in shares]), batch.index)
    lengths = [len(share.index) for share in shares]
    assert max(lengths) - min(lengths) <= 1


@pytest.mark.parametrize(
    "error, kind, text",
    [
        (NumericalError("the loss is nan"), NumericalError, "the loss is nan"),
        (LostProcess("lost contact"), LostProcess, "lost contact"),
        (ZeroDivisionError("by zero"), ProcessError, "process 1: ZeroDivisionError: by zero"),
    ],
)
def test_an_error_is_the_same_in_another_process(error, kind, text):
    rebuilt = ProcessFailure.from_json(ProcessFailure.of(error, rank=1).to_json()).rebuild()
    assert type(rebuilt) is kind and str(rebuilt) == text
