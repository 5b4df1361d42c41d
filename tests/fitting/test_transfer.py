"""A network that begins with weights of another: what stays, what moves, what is refused."""

import pickle

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from sklearn.datasets import load_digits

import ansatz
from ansatz import Classifier, Regressor, networks
from ansatz.errors import ModelError, UsageError
from ansatz.fitting import training
from ansatz.spec import InputSpec

RESNET = {"network": "small_resnet", "network_options": {"depth": 8, "width": 4}, "epochs": 2}
HEAD = ("fc.weight", "fc.bias")


def digits():
    found = load_digits(n_class=3)
    return np.kron(found.images[:48], np.ones((2, 2))).astype(np.float32), found.target[:48]


@pytest.fixture(scope="module")
def state():
    """Of a network for seven classes, with running statistics of its own."""
    network = networks.create("small_resnet", InputSpec.grid(1, 16, 16), 7, depth=8, width=4)
    with torch.no_grad():
        for name, value in network.state_dict().items():
            if "running" in name:
                value.uniform_(0.5, 1.5)
    return {k: v.contiguous() for k, v in network.float().state_dict().items()}


@pytest.fixture(params=["a.pth", "a.safetensors"])
def file(request, state, tmp_path):
    path = tmp_path / request.param
    if path.suffix == ".pth":
        torch.save({"state_dict": {f"module.{k}": v for k, v in state.items()}}, path)
    else:
        kept = {k: v.clone() for k, v in state.items()}
        save_file(kept, path)
    return path


def test_a_frozen_backbone_does_not_change_by_a_bit(file, state):
    model = Classifier(**RESNET, pretrained=file, freeze="backbone").fit(*digits())
    found = model.model_.network.state_dict()
    for name, value in state.items():
        if name not in HEAD and "num_batches" not in name:
            assert torch.equal(found[name], value), name
    assert found["fc.weight"].shape == (3, 16)
    notes = " ".join(model.model_.notes)
    assert "left fresh: fc.weight, fc.bias" in notes and "stay as they began: 4" in notes


def test_without_freezing_every_layer_moves_from_where_it_began(state, tmp_path):
    torch.save(state, tmp_path / "a.pth")
    model = Classifier(**RESNET, pretrained=tmp_path / "a.pth").fit(*digits())
    found = model.model_.network.state_dict()
    for name, value in state.items():
        if name.endswith("weight") and name not in HEAD:
            moved = (found[name] - value).abs().max()
            assert 0 < moved < 0.5, name


def groups_of(monkeypatch, **settings):
    """The rates by group and, epoch by epoch, which tensors moved."""
    steps = []
    build = training.build_step

    def keep(*parts, **options):
        steps.append(build(*parts, **options))
        return steps[-1]

    monkeypatch.setattr(training, "build_step", keep)
    model = Classifier(**{**RESNET, **settings}).fit(*digits())
    return model, steps[0]


def test_earlier_layers_have_smaller_rates(monkeypatch, state, tmp_path):
    torch.save(state, tmp_path / "a.pth")
    _, step = groups_of(monkeypatch, pretrained=tmp_path / "a.pth", learning_rate=0.01)
    rates = sorted(set(step._base_rates))
    assert rates == pytest.approx([0.01 / 2.6**k for k in (4, 3, 2, 1, 0)])


def test_without_a_file_all_layers_have_one_rate(monkeypatch):
    _, step = groups_of(monkeypatch, learning_rate=0.01)
    assert set(step._base_rates) == {0.01}


def test_a_schedule_wakes_groups_from_the_head_on(state, tmp_path):
    torch.save(state, tmp_path / "a.pth")
    settings = {**RESNET, "epochs": 2, "pretrained": tmp_path / "a.pth", "freeze": [1]}
    found = Classifier(**settings).fit(*digits()).model_.network.state_dict()
    moved = {name for name in state if not torch.equal(found[name], state[name].to(found[name]))
             if found[name].shape == state[name].shape and "num_batches" not in name}  # fmt: skip
    assert moved and all(name.startswith("layer3") for name in moved)  # the last before the head


def test_a_model_that_was_begun_elsewhere_needs_the_file_no_more(state, tmp_path):
    path = tmp_path / "a.pth"
    torch.save(state, path)
    images, labels = digits()
    model = Classifier(**RESNET, pretrained=str(path), freeze="backbone").fit(images, labels)
    folder = model.save(tmp_path / "model")
    path.unlink()
    again = ansatz.load(folder)
    assert (again.predict_proba(images) == model.predict_proba(images)).all()


def test_colours_can_begin_with_grey_kernels(state, tmp_path):
    torch.save(state, tmp_path / "a.pth")
    images, labels = digits()
    colours = np.stack([images] * 3, -1)
    model = Classifier(**RESNET, pretrained=tmp_path / "a.pth", freeze="backbone")
    model.fit(colours, labels)
    kernel = model.model_.network.state_dict()["conv1.weight"]
    torch.testing.assert_close(kernel.sum(1, keepdim=True), state["conv1.weight"])


def test_wrong_names_are_listed(tmp_path):
    torch.save({"a": torch.zeros(1), "b": torch.zeros(2)}, tmp_path / "a.pth")
    with pytest.raises(ModelError, match=r"a\.pth: .*lacks .*conv1\.weight.*unknown \(a, b\)"):
        Classifier(**RESNET, pretrained=tmp_path / "a.pth").fit(*digits())


class Code:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


@pytest.mark.parametrize("write", ["torch", "pickle"])
def test_code_in_a_file_of_weights_is_refused_and_not_run(tmp_path, write):
    canary = tmp_path / "canary"
    if write == "torch":
        torch.save({"w": Code(str(canary))}, tmp_path / "a.pth")
    else:
        (tmp_path / "a.pth").write_bytes(pickle.dumps(Code(str(canary))))
    with pytest.raises(ModelError, match=r"a\.pth"):
        Classifier(**RESNET, pretrained=tmp_path / "a.pth").fit(*digits())
    assert not canary.exists()


def test_what_cannot_be_frozen_is_said():
    with pytest.raises(UsageError, match=r"freeze must be backbone"):
        Classifier(**RESNET, freeze="bakcbone").fit(*digits())
    with pytest.raises(UsageError, match=r"Unfreezing needs 1 to 4 epochs"):
        Classifier(**RESNET, freeze=[1, 2, 3, 4, 5]).fit(*digits())


@pytest.mark.parametrize("network", ["mlp", "linear"])
@pytest.mark.parametrize("option", [{"pretrained": "a.pth"}, {"freeze": 1}, {"augment": True}])
def test_options_of_images_are_refused_for_tables(network, option):
    x = np.arange(20.0).reshape(-1, 1)
    with pytest.raises(UsageError, match=f"'{next(iter(option))}' is an option of images"):
        Regressor(network=network, **option).fit(x, x[:, 0])


def test_a_warm_start_goes_on_from_the_fit_not_from_the_file(tmp_path):
    images, labels = digits()
    began = Classifier(**RESNET).fit(images, labels)
    torch.save(began.model_.network.state_dict(), tmp_path / "a.pth")
    model = Classifier(**RESNET, pretrained=tmp_path / "a.pth", warm_start=True, learning_rate=0.01)
    first = model.fit(images, labels).model_.network.conv1.weight.detach().clone()
    again = model.set_params(learning_rate=1e-9).fit(images, labels).model_.network.conv1.weight
    away = (first - began.model_.network.conv1.weight).abs().max()
    assert away > 1e-4 and (again - first).abs().max() < 1e-3 * away


def test_layers_that_are_frozen_at_random_weights_are_reported():
    with pytest.warns(UserWarning, match=r"stay at random weights.*without pretrained="):
        Classifier(**{**RESNET, "epochs": 1}, freeze="backbone").fit(*digits())
