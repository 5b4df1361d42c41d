"""Networks of diffusion: diffusers' numbers, shapes, conditions, patches."""

import json
from pathlib import Path

import pytest
import torch
from torch.testing import assert_close

from ansatz import networks
from ansatz.errors import ModelError, UsageError
from ansatz.networks import DenoisingMLP, DenoisingUNet
from ansatz.networks.denoising_unet import _joined, _split
from ansatz.spec import InputSpec
from ansatz.storage.tensors import read_tensors

FIXTURES = Path(__file__).parents[1] / "fixtures"
SMALL = {"widths": (8, 16), "groups": 4, "head_dim": 8}


@pytest.mark.parametrize("name", ["classes", "ddpm"])
def test_a_checkpoint_of_diffusers_loads_and_gives_the_same_outputs(name):
    folder = FIXTURES / f"diffusers-unet-{name}"
    torch.set_default_dtype(torch.float32)
    saved = read_tensors(folder / "model.safetensors")
    network = DenoisingUNet.from_config(json.loads((folder / "config.json").read_text())).eval()
    weights = {k.removeprefix("weight."): v for k, v in saved.items() if k.startswith("weight.")}
    network.load_state_dict(weights, strict=True)
    labels = [saved["class_labels"]] if "class_labels" in saved else []
    with torch.no_grad():
        found = network(saved["x"], saved["t"], *labels)
    assert_close(found, saved["y"], rtol=1e-5, atol=1e-5)
    if labels:  # a one-hot condition is its class
        one_hot = torch.nn.functional.one_hot(labels[0], 5).float()
        assert_close(network(saved["x"], saved["t"], one_hot), found, rtol=1e-5, atol=1e-5)


def test_a_config_with_other_parts_is_refused():
    config = json.loads((FIXTURES / "diffusers-unet-ddpm" / "config.json").read_text())
    with pytest.raises(ModelError, match="no time_embedding_type='fourier'"):
        DenoisingUNet.from_config(config | {"time_embedding_type": "fourier"})
    with pytest.raises(ModelError, match="has the blocks DownBlock2D and AttnDownBlock2D"):
        DenoisingUNet.from_config(config | {"down_block_types": ["SkipDownBlock2D"] * 3})


@pytest.mark.parametrize("size", [(13,), (9, 12), (5, 6, 7)])
@pytest.mark.parametrize("patch", [1, 2])
def test_grids_of_any_size_keep_their_size(size, patch):
    network = networks.create("denoising_unet", (2, *size), 3, patch=patch, **SMALL)
    y = network(torch.randn(2, 2, *size), torch.tensor([3.0, 800.0]))
    assert y.shape == (2, 3, *size) and y.isfinite().all()


@pytest.mark.parametrize("size", [(6,), (4, 6), (2, 4, 6)])
def test_patches_are_tiles_of_the_grid(size):
    x = torch.randn(2, 3, *size)
    joined = _joined(x, 2)
    assert joined.shape == (2, 3 * 2 ** len(size), *(n // 2 for n in size))
    assert torch.equal(_split(joined, 2), x)
    if len(size) == 2:
        assert_close(joined[0, 4:8, 1, 2], x[0, 1, 2:4, 4:6].flatten())


@pytest.mark.parametrize("name", ["denoising_mlp", "denoising_unet"])
def test_it_draws_from_its_generator_alone_and_zeros_are_no_condition(name):
    spec = 5 if name == "denoising_mlp" else InputSpec.grid(1, 8, 8)
    options = {"width": 16} if name == "denoising_mlp" else SMALL
    state = torch.get_rng_state()
    first, second = (
        networks.create(name, spec, 2, torch.Generator().manual_seed(3), classes=4, **options)
        for _ in range(2)
    )
    assert torch.equal(torch.get_rng_state(), state)
    for key, value in first.state_dict().items():
        assert torch.equal(value, second.state_dict()[key])
    x = torch.randn(3, 5) if name == "denoising_mlp" else torch.randn(3, 1, 8, 8)
    t, given = torch.tensor([1.0, 500.0, 999.0]), torch.eye(4)[:3]
    y = first(x, t, given)
    assert not torch.allclose(first(x, t, 0 * given), y)
    assert_close(first(x[:1], t[:1], given[:1]), y[:1])  # rows do not see each other
    y.square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in first.parameters())
    with pytest.raises(UsageError, match="needs a condition of 4"):
        first(x, t)
    plain = networks.create(name, spec, 2, **options)
    with pytest.raises(UsageError, match="built without a condition"):
        plain(x, t, given)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: DenoisingUNet((1, 8, 8), 1, widths=(10,)), "multiples of groups=16"),
        (lambda: DenoisingUNet((1, 8, 8), 1, attention=(True,)), "one entry per width, got 1"),
        (lambda: DenoisingUNet((1, 8, 8), 1, dropout=1.0), "dropout of denoising_unet"),
        (lambda: DenoisingUNet((1, 8, 8), 1, head_dim=5), "head_dim of denoising_unet must divide"),
        (lambda: DenoisingMLP((1, 8, 8), 1), "takes vectors of numbers"),
        (lambda: DenoisingMLP(3, 3)(torch.zeros(2, 4), torch.zeros(2)), r"shape \(B, 3\)"),
    ],
)  # fmt: skip
def test_wrong_settings_are_named(call, message):
    with pytest.raises(UsageError, match=message):
        call()
