"""Folders of Hugging Face: read, written, and refused in one line."""

import json

import pytest
import torch
from safetensors.torch import save_file
from tests.networks.test_sequence_transformers import MASK, SMALL, TOKENS, V, hugging_face, shaken
from torch.testing import assert_close

from ansatz import networks
from ansatz.errors import ModelError
from ansatz.networks import read_hugging_face, write_hugging_face

X = torch.randint(2, V, (3, 7), generator=torch.Generator().manual_seed(0))
NAMES = pytest.mark.parametrize("name", ["gpt", "bert", "distilbert"])


def outputs(name):
    return None if name == "gpt" else 3


def logits(network):
    return network.eval()(X, MASK)


@NAMES
@pytest.mark.filterwarnings("ignore")
def test_a_folder_of_theirs_gives_the_same_logits(name, tmp_path):
    config, kind = hugging_face(name)
    theirs = shaken(kind(config).double())
    theirs.save_pretrained(tmp_path)
    ours, loaded = read_hugging_face(tmp_path, outputs(name), head="strict")
    given = theirs(input_ids=X, attention_mask=MASK.long()).logits
    found = logits(ours).transpose(1, 2)[MASK] if name == "gpt" else logits(ours)
    assert_close(found, given[MASK] if name == "gpt" else given, atol=1e-10, rtol=0)
    assert loaded.fresh == () and loaded.unused == ()


@NAMES
@pytest.mark.filterwarnings("ignore")
def test_they_load_a_folder_of_ours(name, tmp_path):
    options = {"each": True} if name == "gpt" else {}
    ours = shaken(networks.create(name, TOKENS, outputs(name) or V, **SMALL, **options))
    write_hugging_face(tmp_path / "m", ours)
    _, kind = hugging_face(name)
    theirs = kind.from_pretrained(tmp_path / "m", dtype=torch.float64).eval()
    given = theirs(input_ids=X, attention_mask=MASK.long()).logits
    found = logits(ours).transpose(1, 2)[MASK] if name == "gpt" else logits(ours)
    assert_close(found, given[MASK] if name == "gpt" else given, atol=1e-10, rtol=0)


def folder(tmp_path, name="bert", change=lambda state: state, **config):
    options = {"each": True} if name == "gpt" else {}
    net = shaken(networks.create(name, TOKENS, outputs(name) or V, **SMALL, **options))
    write_hugging_face(tmp_path / "m", net)
    path = tmp_path / "m" / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **config}))
    state = {k: v.clone() for k, v in change(net.state_dict()).items()}
    save_file(state, tmp_path / "m" / "model.safetensors")
    return net, tmp_path / "m"


def test_only_the_head_starts_anew_and_that_is_reported(tmp_path):
    net, path = folder(tmp_path)
    other, loaded = read_hugging_face(path, 5)
    assert loaded.fresh == ("classifier.weight", "classifier.bias")
    assert_close(other.hidden_states(X, MASK), net.hidden_states(X, MASK))


def old(state):
    """Without the prefix, with the norms' names of TensorFlow and the buffers of older versions."""
    short = {k.removeprefix("bert.").removeprefix("transformer."): v for k, v in state.items()}
    for a, b in (("LayerNorm.weight", "LayerNorm.gamma"), ("LayerNorm.bias", "LayerNorm.beta")):
        short = {k.replace(a, b): v for k, v in short.items()}
    buffers = ("embeddings.position_ids", "h.0.attn.bias", "h.0.attn.masked_bias")
    return {**short, **{key: torch.ones(1) for key in buffers}}


@pytest.mark.parametrize("name", ["gpt", "bert"])
def test_older_names_are_read(name, tmp_path):
    net, path = folder(tmp_path, name, old)
    assert_close(logits(read_hugging_face(path, outputs(name), head="keep")[0]), logits(net))


def test_parts_and_files_of_torch_are_read(tmp_path):
    net, path = folder(tmp_path)
    state = {k: v.clone() for k, v in net.state_dict().items()}
    (path / "model.safetensors").unlink()
    torch.save(state, path / "pytorch_model.bin")
    assert_close(logits(read_hugging_face(path, 3, head="strict")[0]), logits(net))
    keys = list(state)
    parts = {"a.safetensors": keys[:9], "b.safetensors": keys[9:]}
    for file, names in parts.items():
        save_file({k: state[k] for k in names}, path / file)
    index = {"weight_map": {k: file for file, names in parts.items() for k in names}}
    (path / "model.safetensors.index.json").write_text(json.dumps(index))
    (path / "pytorch_model.bin").unlink()
    assert_close(logits(read_hugging_face(path, 3, head="strict")[0]), logits(net))
    index["weight_map"][keys[0]] = "../c.safetensors"
    (path / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(ModelError, match="outside of the folder"):
        read_hugging_face(path, 3)


def test_what_does_not_fit_is_one_line(tmp_path):
    _, path = folder(tmp_path, auto_map={"AutoModel": "evil.Model"}, model_type="llama")
    with pytest.raises(ModelError, match=r"model_type .llama., known are bert, distilbert, gpt2"):
        read_hugging_face(path, 3)
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps({**config, "model_type": "bert"}))
    with pytest.raises(ModelError, match="embeddings are for 40 tokens, the vocabulary has 41"):
        read_hugging_face(path, 3, vocabulary=41)
    state = read_hugging_face(path, 3)[0].state_dict()
    gone = "bert.embeddings.LayerNorm.weight"
    save_file({k: v for k, v in state.items() if k != gone}, path / "model.safetensors")
    with pytest.raises(ModelError, match=f"lacks 1 .{gone}"):
        read_hugging_face(path, 3)
