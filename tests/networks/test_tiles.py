import pytest
import torch
from torch import nn
from torch.testing import assert_close

from ansatz.errors import UsageError
from ansatz.layers import mirror_pad
from ansatz.networks import FCN, UNet, UNet3d, predict_tiles, tiles


def test_cores_cover_every_cell_once_and_windows_surround_them():
    for length in range(1, 30):
        for border in ("mirror", "keep"):
            found = tiles(length, 9, 2, border)
            assert [i for t in found for i in range(*t.core)] == list(range(length))
            for t in found:
                if border == "mirror":
                    assert t.stop - t.start == 9 and t.start == t.core[0] - 2
                else:
                    assert t.start == max(t.core[0] - 2, 0) and t.stop <= length
                assert t.stop >= min(t.core[1] + 2, length)


CASES = {  # layers, cells that an answer sees on either side
    "blur": (lambda: nn.Conv2d(2, 3, 5, padding=2), 2),
    "two layers": (
        lambda: nn.Sequential(
            nn.Conv2d(2, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 3, 5, padding=2)
        ),
        3,
    ),
    "dilated": (lambda: nn.Conv2d(2, 3, 3, padding=4, dilation=4), 4),
}


@pytest.mark.parametrize("make, reach", CASES.values(), ids=CASES)
@pytest.mark.parametrize("size", [(31, 18), (7, 40)], ids=str)
def test_with_enough_overlap_tiles_give_the_answer_of_the_whole_image(make, reach, size):
    network, image = make(), torch.randn(2, 2, *size)
    whole = network(image).detach()
    options = {"tile": (16, 11), "batch_size": 3}
    assert_close(predict_tiles(network, image, overlap=reach, border="keep", **options), whole)
    # and of the mirrored image, far enough from its end
    wide = network(mirror_pad(image, ((2 * reach, 2 * reach),) * 2)).detach()
    inner = wide[..., 2 * reach : -2 * reach, 2 * reach : -2 * reach]
    assert_close(predict_tiles(network, image, overlap=reach, **options), inner)
    short = predict_tiles(network, image, overlap=reach - 1, border="keep", **options)
    assert not torch.allclose(short, whole)


@pytest.mark.parametrize("up", ["transposed", "upsample"])
def test_a_padded_u_net_is_tiled_exactly(up):
    """Of depth 1 an answer sees 2 + 2 * 2 + 2 cells and what is pooled with them: under 12."""
    network = UNet(1, 2, depth=1, width=3, up=up).eval()
    image = torch.randn(1, 1, 51, 37)
    tiled = predict_tiles(network, image, tile=32, overlap=12, border="keep")
    assert_close(tiled, network(image).detach())


@pytest.mark.parametrize("make, options", [(UNet, {}), (FCN, {"skips": 1})], ids=["unet", "fcn"])
def test_tiles_of_any_size_are_aligned_with_what_is_pooled(make, options):
    """Reach of both: under 28 cells; 4 cells are pooled into one."""
    image = torch.randn(1, 1, 99, 41)
    network = make(1, 2, depth=2, width=2, **options).eval()
    whole, tiling = network(image).detach(), {"tile": 75, "overlap": 27, "border": "keep"}
    assert_close(predict_tiles(network, image, multiple=network.stride, **tiling), whole)
    assert not torch.allclose(predict_tiles(network, image, **tiling), whole)


def test_an_unpadded_u_net_gets_its_border_from_the_mirror():
    """Figure 2 of the paper: windows lose the same cells that the overlap adds."""
    network = UNet(1, 2, depth=1, width=3, padded=False).eval()
    image = torch.randn(2, 1, 30, 21)
    window = 36
    lost = (window - network.output_size(window)[0]) // 2
    tiled = predict_tiles(network, image, tile=window, overlap=lost)
    wide = mirror_pad(image, ((lost, lost), (lost, lost + 1)))  # an even number of cells
    assert_close(tiled, network(wide).detach()[..., :30, :21])


def test_volumes_are_tiled_in_three_dimensions():
    network = UNet3d(1, 2, depth=1, width=2).eval()
    image = torch.randn(1, 1, 14, 30, 7)
    tiled = predict_tiles(network, image, tile=(14, 26, 8), overlap=(0, 12, 0), border="keep")
    assert_close(tiled, network(image).detach())


def test_signals_too():
    network, image = nn.Conv1d(1, 2, 3, padding=1), torch.randn(2, 1, 29)
    assert_close(
        predict_tiles(network, image, tile=8, overlap=1, border="keep"), network(image).detach()
    )


def tile_mean(x):
    return x.mean((2, 3), keepdim=True).expand_as(x)


@pytest.mark.parametrize("blend", ["linear", "gaussian"])
@pytest.mark.parametrize("border", ["mirror", "keep"])
def test_blended_tiles_are_a_weighted_mean(blend, border):
    """What every tile says alike stays; a constant per tile is averaged between neighbours."""
    image = torch.randn(2, 1, 23, 17)
    options = {"tile": 10, "overlap": 2, "blend": blend, "border": border}
    assert_close(predict_tiles(nn.Identity(), image, **options), image)
    means = predict_tiles(tile_mean, image, **options)
    assert means.min() > image.min() and means.max() < image.max()
    crop = predict_tiles(tile_mean, image, **{**options, "blend": "crop"})
    steps = [y.diff(dim=-1).abs().max() for y in (crop, means)]
    assert steps[1] < steps[0]  # no seams


def test_linear_weights_of_neighbours_add_up_to_one():
    weight = predict_tiles(
        lambda x: torch.ones_like(x), torch.zeros(1, 1, 60), tile=20, overlap=4, blend="linear"
    )
    assert_close(weight, torch.ones(1, 1, 60))


def test_no_more_windows_than_asked_for_are_in_memory():
    seen = []

    def function(x):
        seen.append(len(x))
        assert not torch.is_grad_enabled() and x.shape[2:] == (8, 8)
        return x

    predict_tiles(function, torch.randn(3, 1, 20, 20), tile=8, overlap=1, batch_size=5)
    assert max(seen) == 5 and sum(seen) == 3 * 4 * 4


@pytest.mark.parametrize(
    "options, message",
    [
        ({"tile": 8, "overlap": 4}, "below half a tile of 8, got 4"),
        ({"tile": 8, "overlap": 1, "multiple": 4}, "half a tile of 8 in multiples of 4, got 1"),
        ({"tile": (8, 8, 8), "overlap": 1}, r"one for each of 2 axes, got \(8, 8, 8\)"),
        (
            {"tile": 8, "overlap": 1, "blend": "mean"},
            "blend of .* must be one of 'crop'",
        ),
        (
            {"tile": 8, "overlap": 1, "border": "zero"},
            "one of 'mirror', 'keep', got 'zero'",
        ),
        ({"tile": 0, "overlap": 0}, "tile of predict_tiles must be a whole number"),
    ],
)
def test_what_it_refuses(options, message):
    with pytest.raises(UsageError, match=message):
        predict_tiles(nn.Identity(), torch.zeros(1, 1, 9, 9), **options)


def test_answers_of_the_wrong_size_are_refused():
    shrink = nn.Conv2d(1, 1, 5)
    with pytest.raises(UsageError, match=r"answers of 4 pixels for windows of 8.*overlap of 1"):
        predict_tiles(shrink, torch.zeros(1, 1, 9, 9), tile=8, overlap=1)
    with pytest.raises(UsageError, match="with border='keep' none"):
        predict_tiles(shrink, torch.zeros(1, 1, 30, 30), tile=8, overlap=2, border="keep")
    with pytest.raises(UsageError, match=r"shape \(B, C, \*size\), got \(9, 9\)"):
        predict_tiles(shrink, torch.zeros(9, 9), tile=8, overlap=2)
