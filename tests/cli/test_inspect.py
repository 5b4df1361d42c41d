import json

import pytest
import torch

from ansatz.storage import Checkpoints


def test_says_what_the_model_is(command, model):
    page = command("inspect", model)
    assert page.status == 0 and "linear" in page.out and "normal" in page.out and "town" in page.out
    document = json.loads(command("inspect", model, "--json").out)
    assert document["network"] == "linear" and document["likelihood"] == "normal"


@pytest.mark.parametrize("name", ["weights.safetensors", "ansatz.json", "manifest.json"])
@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "delete"])
def test_names_a_damaged_file(command, model, name, damage):
    file = model / name
    content = bytearray(file.read_bytes())
    if damage == "delete":
        file.unlink()
    else:
        content[len(content) // 2] ^= 1
        cut = {"flip": len(content), "cut": len(content) // 2, "empty": 0}[damage]
        file.write_bytes(content[:cut])
    for words in (["inspect", model], ["predict", model, "new.csv"]):
        done = command(*words)
        assert done.status == 4 and done.out == "" and name in done.err, done.err
        assert done.err.count("\n") == 1


@pytest.mark.parametrize("words", [["inspect", "nothing"], ["predict", "new.csv", "new.csv"]])
def test_what_is_no_model_is_a_bad_model(command, model, words):
    done = command(*words)
    assert done.status == 4 and "ansatz fit" in done.err


def test_a_pickle_in_place_of_weights_never_runs(command, model, tmp_path):
    code = f"cos\nsystem\n(S'touch {tmp_path}/canary'\ntR."
    (model / "weights.safetensors").write_bytes(code.encode())
    assert command("predict", model, "new.csv").status == 4
    assert command("inspect", model).status == 4
    assert not (tmp_path / "canary").exists()


def test_a_run_shows_its_checkpoints_and_names_the_damaged_one(command, tmp_path):
    checkpoints = Checkpoints(tmp_path / "m.training")
    for step in (1, 2):
        checkpoints.save(step, {"model.safetensors": {"w": torch.zeros(4)}}, best=step == 1)
    done = command("inspect", "m.training")
    assert done.status == 0 and done.out.split().count("whole") == 2
    file = tmp_path / "m.training" / "step-000000002" / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-1])
    done = command("inspect", "m.training")
    assert done.status == 4 and "model.safetensors" in done.err
    assert done.out.split().count("whole") == 1 and "damaged" in done.out
