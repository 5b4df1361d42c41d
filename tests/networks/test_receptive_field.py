"""Against brute force: move one cell of the input and see which units move."""

import itertools

import pytest
import torch
from torch import nn
from torch.nn import functional

from ansatz import networks
from ansatz.errors import UsageError
from ansatz.layers import BedOfNails, LocalResponseNorm, StochasticPool2d, mirror_pad
from ansatz.networks import receptive_field
from ansatz.spec import InputSpec


def positive(network):
    """No weight is 0 and none cancels another: what can move a unit does move it."""
    for parameter in network.parameters():
        parameter.data = 0.1 * torch.rand_like(parameter) + 0.05
    return network.eval()


def moved_by(network, x):
    """(*units, *cells): does a change of that cell move that unit?"""
    with torch.no_grad():
        before = network(x)
        seen = torch.zeros(*before.shape[2:], *x.shape[2:], dtype=torch.bool)
        for cell in itertools.product(*(range(n) for n in x.shape[2:])):
            moved = x.clone()
            moved[(slice(None), slice(None), *cell)] += 50.0
            seen[(..., *cell)] = (network(moved) != before).flatten(0, 1).any(0)
    return seen


def by_force(network, size):
    """Per axis of the grid and unit: the first and last cell whose change moves the unit."""
    axes, seen = len(size), moved_by(network, torch.rand(1, 1, *size))
    for _ in range(2):  # where a maximum goes back to hangs on the numbers
        seen |= moved_by(network, torch.rand(1, 1, *size))
    found = []
    for axis in range(axes):
        others = [o for o in range(axes) if o != axis]
        line = seen.flatten(0, axes - 1) if not seen.ndim else seen
        for other in sorted([*others, *(axes + o for o in others)], reverse=True):
            line = line.any(other)  # (units, cells)
        spans = []
        for unit in line:
            cells = unit.nonzero().flatten().tolist()
            spans.append((cells[0], cells[-1]) if cells else (0, -1))
        found.append(tuple(spans))
    return tuple(found)


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.wide, self.narrow = nn.Conv2d(1, 2, 5, 2, 2), nn.Conv2d(1, 2, 1, 2)

    def forward(self, x):
        return functional.relu(self.wide(x)).add_(self.narrow(x))


class Branches(nn.Module):
    """Side by side, and a grouped convolution that mixes only some channels."""

    def __init__(self):
        super().__init__()
        self.one, self.five = nn.Conv2d(1, 2, 1), nn.Conv2d(1, 2, 5, padding=2)
        self.last = nn.Conv2d(5, 5, 3, groups=5, dilation=2)

    def forward(self, x):
        pooled = functional.max_pool2d(x, 3, 1, 1)
        return self.last(torch.cat([self.one(x), self.five(x), pooled], 1))


class SmallUNet(nn.Module):
    def __init__(self, up, crop=0):
        super().__init__()
        self.first, self.below = nn.Conv2d(1, 2, 3, padding=1), nn.Conv2d(2, 2, 3, padding=1)
        self.up, self.last, self.crop = up, nn.Conv2d(4, 1, 3, padding=1 - min(crop, 1)), crop

    def forward(self, x):
        high = functional.relu(self.first(x))
        low = functional.relu(self.below(functional.max_pool2d(high, 2)))
        low, c = self.up(low), self.crop
        both = torch.cat([high, low], 1)
        return self.last(both[:, :, c : both.shape[2] - c, c : both.shape[3] - c])


class Unpooled(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.after = nn.Conv2d(1, 1, 3, padding=1), nn.Conv2d(1, 1, 3, padding=1)

    def forward(self, x):
        pooled, places = functional.max_pool2d(self.before(x), 2, return_indices=True)
        return self.after(functional.max_unpool2d(pooled, places, 2))


class PutBack(nn.Module):
    """Maxima of windows back to where they were, or on a grid of another size."""

    def __init__(self, window, stride=None, padding=0, size=None):
        super().__init__()
        self.options, self.size = (window, stride, padding), size

    def forward(self, x):
        axes = x.ndim - 2
        pool = (functional.max_pool1d, functional.max_pool2d)[axes - 1]
        back = (functional.max_unpool1d, functional.max_unpool2d)[axes - 1]
        pooled, places = pool(x, *self.options, return_indices=True)
        return back(pooled, places, *self.options, output_size=self.size or x.shape[2:])


class Mirrored(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width, self.convolve = width, nn.Conv2d(1, 1, 2 * width + 1)

    def forward(self, x):
        return self.convolve(mirror_pad(x, ((self.width, self.width),) * 2))


class Written(nn.Module):
    """Into parts of a tensor that is there before."""

    def forward(self, x):
        y = torch.zeros_like(x)
        y[:, :, 1:] = x[:, :, :-1]
        y[:, :, :, 2:6] += x[:, :, :, :4]
        return functional.avg_pool2d(y, 2)


class Last(nn.Module):
    """Channels last, a linear layer at each pixel, and back."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.linear = nn.Conv2d(1, 3, 3), nn.LayerNorm(3), nn.Linear(3, 2)

    def forward(self, x):
        return self.linear(self.norm(self.conv(x).permute(0, 2, 3, 1))).movedim(-1, 1)


class Squeeze(nn.Module):
    """A gate that has seen the whole image."""

    def __init__(self):
        super().__init__()
        self.conv, self.gate = nn.Conv2d(1, 2, 3, 2), nn.Linear(2, 2)

    def forward(self, x):
        h = self.conv(x)
        return h * self.gate(h.mean((2, 3)))[:, :, None, None]


def up(mode, **options):
    return nn.Upsample(scale_factor=2, mode=mode, **options)


def chain(*layers):
    return nn.Sequential(*layers)


KINDS = {
    "plain": (lambda: chain(nn.Conv2d(1, 2, 3), nn.MaxPool2d(2), nn.Conv2d(2, 1, 3)), (12, 11)),
    "strides that leave a rest": (
        lambda: chain(nn.Conv2d(1, 2, 2, 3), nn.Conv2d(2, 1, 3, padding=2)),
        (9, 10),
    ),
    "dilated": (lambda: chain(nn.Conv2d(1, 2, 3, dilation=2), nn.Conv2d(2, 1, (1, 4))), (9, 9)),
    "rounded up": (
        lambda: chain(nn.MaxPool2d(3, 2, 1, ceil_mode=True), nn.Conv2d(1, 1, 2)),
        (8, 7),
    ),
    "residual": (Residual, (8, 9)),
    "branches": (Branches, (8, 8)),
    "u-net, transposed": (lambda: SmallUNet(nn.ConvTranspose2d(2, 2, 2, 2)), (8, 8)),
    "u-net, overlapping": (lambda: SmallUNet(nn.ConvTranspose2d(2, 2, 4, 2, 1)), (8, 8)),
    "u-net, nearest": (lambda: SmallUNet(up("nearest")), (8, 8)),
    "u-net, bilinear": (lambda: SmallUNet(up("bilinear")), (8, 8)),
    "u-net, corners": (lambda: SmallUNet(up("bilinear", align_corners=True)), (8, 8)),
    "u-net, cropped": (lambda: SmallUNet(nn.ConvTranspose2d(2, 2, 2, 2), crop=1), (8, 8)),
    "holes": (lambda: chain(nn.ConvTranspose2d(1, 1, 2, 3), nn.Conv2d(1, 1, 2)), (4, 3)),
    "nails": (lambda: chain(nn.Conv2d(1, 1, 2), BedOfNails(2), nn.Conv2d(1, 1, 3)), (5, 4)),
    "max unpooling": (Unpooled, (4, 6)),
    "max unpooling with a rest": (lambda: PutBack(2), (5, 7)),
    "reflected twice": (lambda: Mirrored(9), (5, 6)),
    "hard swish": (lambda: chain(nn.Conv2d(1, 2, 3), nn.Hardswish(), nn.Conv2d(2, 1, 2)), (5, 6)),
    "gated channels": (lambda: chain(nn.Conv2d(1, 4, 3), nn.GLU(1), nn.Conv2d(2, 1, 2)), (5, 6)),
    "gated places": (lambda: nn.GLU(2), (6, 4)),
    "adaptive": (lambda: chain(nn.Conv2d(1, 1, 3), nn.AdaptiveAvgPool2d((3, 4))), (9, 9)),
    "reflected": (lambda: nn.Conv2d(1, 1, 3, padding=1, padding_mode="reflect"), (5, 6)),
    "circular": (lambda: nn.Conv2d(1, 1, 3, padding=1, padding_mode="circular"), (5, 6)),
    "written in part": (Written, (6, 8)),
    "channels last": (Last, (6, 6)),
    "pixel shuffle": (lambda: chain(nn.Conv2d(1, 4, 3), nn.PixelShuffle(2)), (5, 6)),
    "group norm": (lambda: chain(nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4)), (5, 6)),
    "batch norm": (lambda: chain(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU()), (5, 6)),
    "response norm": (lambda: chain(nn.Conv2d(1, 3, 3), LocalResponseNorm(3)), (5, 6)),
    "stochastic": (lambda: chain(nn.Conv2d(1, 1, 2), nn.ReLU(), StochasticPool2d(2)), (7, 5)),
    "lp pooling": (lambda: chain(nn.LPPool2d(2, 3, 2), nn.Conv2d(1, 1, 2)), (9, 8)),
    "squeeze": (Squeeze, (7, 7)),
    "signal": (lambda: chain(nn.Conv1d(1, 2, 3), nn.MaxPool1d(2), nn.Conv1d(2, 1, 3)), (12,)),
    "signal, up": (lambda: chain(nn.AvgPool1d(2), nn.ConvTranspose1d(1, 1, 4, 2, 1)), (8,)),
    "volume": (lambda: chain(nn.Conv3d(1, 1, 2), nn.MaxPool3d(2), nn.Conv3d(1, 1, 2)), (6, 5, 5)),
    "volume, up": (lambda: chain(nn.AvgPool3d(2), up("trilinear")), (4, 4, 4)),
    "global": (lambda: chain(nn.Conv2d(1, 2, 3), nn.AdaptiveAvgPool2d(1)), (5, 6)),
}  # fmt: skip


@pytest.mark.parametrize("make, size", KINDS.values(), ids=KINDS)
def test_is_what_moving_each_cell_finds(make, size):
    network = positive(make())
    field = receptive_field(network, InputSpec.grid(1, *size))
    force = by_force(network, size)
    shown = tuple(
        line * len(there) if len(line) == 1 else line
        for line, there in zip(field.units, force, strict=True)
    )
    assert shown == force


ENDLESS = {name: row for name, row in KINDS.items() if name not in ("global", "adaptive",
           "group norm", "gated places", "max unpooling with a rest",
           "squeeze", "circular", "written in part", "u-net, corners")}  # fmt: skip


@pytest.mark.parametrize("make, size", ENDLESS.values(), ids=ENDLESS)
def test_size_and_stride_are_those_far_from_the_border(make, size):
    """On a grid so large that a unit in the middle sees no border, the exact cells tell both."""
    network = make()
    field = receptive_field(network, InputSpec.grid(1, *size))
    large = receptive_field(network, InputSpec.grid(1, *(n + 24 for n in size)))
    for axis, line in enumerate(large.units):
        n = len(line)
        middle = [cells for cells in line[n // 3 : 2 * n // 3 + 1] if cells[1] >= cells[0]]
        assert field.size[axis] == max(last - first + 1 for first, last in middle)
        period = 12 if n > 36 else 4  # units; a multiple of the period
        first = n // 2 - period // 2
        assert field.stride[axis] == (line[first + period][0] - line[first][0]) / period


@pytest.mark.parametrize(
    "activation", [nn.Hardswish(), nn.PReLU(), nn.PReLU(2), nn.RReLU(), nn.LogSigmoid()], ids=str
)
def test_an_activation_sees_its_own_cell(activation):
    network = chain(nn.Conv2d(1, 2, 3), activation.double())
    assert receptive_field(network, InputSpec.grid(1, 9, 9)).size == (3, 3)
    assert receptive_field(activation, InputSpec.grid(2, 9, 9)).size == (1, 1)


@pytest.mark.parametrize(
    "network, size",
    [
        (PutBack(2), (9,)),
        (PutBack(3, 2), (9,)),
        (PutBack(3, 2, 1), (6, 7)),
        (PutBack(2, size=(7, 6)), (6, 7)),
    ],
    ids=["signal", "overlapping", "padded", "other size"],
)
def test_maxima_that_are_put_back_are_never_said_to_see_too_little(network, size):
    """Which cells of its window a place answers to hangs on the numbers: of some trials all."""
    field = receptive_field(network, InputSpec.grid(1, *size))
    for _ in range(3):
        for line, force in zip(field.units, by_force(network, size), strict=True):
            line = line * len(force) if len(line) == 1 else line
            for (first, last), (low, high) in zip(line, force, strict=True):
                assert low > high or first <= low <= high <= last


def test_a_signals_maxima_come_back_into_their_window():
    field = receptive_field(PutBack(2), InputSpec.grid(1, 5))
    assert field.units == (((0, 1), (0, 1), (2, 3), (2, 3), (0, -1)),)


def test_maxima_on_a_grid_of_another_size_may_come_from_anywhere():
    """Indices count cells line by line: on shorter lines they are other places."""
    field = receptive_field(PutBack(2, size=(7, 6)), InputSpec.grid(1, 6, 7))
    assert set(field.units[0]) == {(0, 5)} and set(field.units[1]) == {(0, 5)}


@pytest.mark.parametrize("size", [30, 10])
def test_a_mirrored_border_does_not_cut_the_receptive_field(size):
    network = networks.create("sliding_window", InputSpec.grid(1, size, size), 2, widths=(2, 2, 2))
    field = receptive_field(network, InputSpec.grid(1, size, size))
    assert field.size == (network.window,) * 2 == (45, 45) and field.start == (-22, -22)


def test_a_chain_is_the_formula():
    layers, expected, jump = [], 1, 1
    for k, s, d in ((3, 1, 1), (2, 2, 1), (5, 1, 2), (3, 3, 1), (2, 1, 3)):
        layers.append(nn.Conv1d(1, 1, k, s, dilation=d, padding=k // 2))
        expected, jump = expected + d * (k - 1) * jump, jump * s
    field = receptive_field(chain(*layers), InputSpec.grid(1, 60))
    assert field.size == (expected,) and field.stride == (jump,)


def test_two_small_kernels_see_what_a_large_one_sees():
    two = chain(nn.Conv2d(1, 1, 3), nn.Conv2d(1, 1, 3))
    x = torch.zeros(1, 1, 9, 9)
    assert receptive_field(two, x) == receptive_field(nn.Conv2d(1, 1, 5), x)


def test_start_and_centre_are_of_the_first_unit_and_may_lie_in_the_padding():
    field = receptive_field(nn.Conv2d(1, 1, (3, 5), 2, (1, 0)), InputSpec.grid(1, 9, 9))
    assert field.start == (-1, 0) and field.centre == (0.0, 2.0) and field.stride == (2, 2)
    assert field.of(0, 1) == (slice(0, 2), slice(2, 7))


def test_enlarging_has_a_stride_below_one():
    field = receptive_field(nn.ConvTranspose1d(1, 1, 2, 2), InputSpec.grid(1, 4))
    assert field.stride == (0.5,) and field.units == (((0, 0), (0, 0), (1, 1), (1, 1), (2, 2),
                                                       (2, 2), (3, 3), (3, 3)),)  # fmt: skip


VGG16 = [2, 2, 3, 3, 3]  # convolutions before each pooling
PUBLISHED = {
    "alexnet": ([(11, 4, 2), (3, 2, 0), (5, 1, 2), (3, 2, 0), *[(3, 1, 1)] * 3, (3, 2, 0)], 195),
    "vgg16": ([w for n in VGG16 for w in (*[(3, 1, 1)] * n, (2, 2, 0))], 212),
}


@pytest.mark.parametrize("windows, expected", PUBLISHED.values(), ids=PUBLISHED)
def test_published_sizes(windows, expected):
    """Araujo, Norris & Sim (2019), table 1."""
    network = chain(*(nn.AvgPool2d(k, s, p) if s == 2 and not p else nn.Conv2d(1, 1, k, s, p)
                      for k, s, p in windows))  # fmt: skip
    field = receptive_field(network, InputSpec.grid(1, 96, 96))
    assert field.size == (expected,) * 2 and field.stride == (32, 32)


NAMED = {
    "unet": ((8, 12), None, {"depth": 2, "width": 2}),
    "unet, unpadded": ((44, 44), None, {"depth": 2, "width": 2, "padded": False}),
    "unet, signal": ((16,), None, {"depth": 2, "width": 2, "up": "upsample"}),
    "attention_unet": ((8, 8), None, {"depth": 2, "width": 2}),
    "unet3d": ((4, 4, 8), None, {"depth": 2, "width": 2}),
    "densenet121": ((16, 16), "features.denseblock2", {"blocks": (2, 2), "growth": 2}),
    "small_resnet": ((12, 12), "layer2", {"depth": 8, "width": 2}),
    "highway": ((9, 8), "parts.1", {"depth": 3, "width": 2}),
    "lenet5": ((28, 28), "s4", {}),
}


@pytest.mark.parametrize("size, layer, options", NAMED.values(), ids=NAMED)
def test_networks_by_name_see_what_moving_a_line_of_cells_finds(request, size, layer, options):
    """From zeros and without biases, so that no effect is too small beside another to be seen."""
    name = request.node.callspec.id.split(",")[0]
    spec = InputSpec.grid(1, *size)
    network = positive(networks.create(name, spec, 2, **options).double())
    for key, parameter in network.named_parameters():
        parameter.data *= not key.endswith("bias")
    if layer is not None:
        kept = {}
        network.get_submodule(layer).register_forward_hook(lambda m, x, y: kept.update(y=y))
    field = receptive_field(network, spec, layer=layer)
    for axis, line in enumerate(field.units):
        seen = []
        for cell in range(size[axis]):
            x = torch.zeros(1, 1, *size)
            x.select(2 + axis, cell).fill_(1.0)
            with torch.no_grad():
                y = network(x) if layer is None else (network(x), kept["y"])[1]
            seen.append((y != 0).movedim(2 + axis, 0).flatten(1).any(1))
        spans = [unit.nonzero().flatten() for unit in torch.stack(seen, 1)]
        assert line == tuple((int(span[0]), int(span[-1])) for span in spans)


def test_a_layer_within_a_network_has_its_own():
    network = chain(nn.Conv2d(1, 1, 3), nn.Conv2d(1, 1, 3, 2), nn.AdaptiveAvgPool2d(1))
    spec = InputSpec.grid(1, 9, 9)
    assert receptive_field(network, spec, layer="1").size == (5, 5)
    assert receptive_field(network, spec).of(0, 0) == (slice(0, 9), slice(0, 9))


def test_the_network_and_the_input_are_left_as_they_were():
    network, x = (
        chain(nn.Conv2d(1, 1, 3), nn.BatchNorm2d(1), nn.Dropout(0.5)),
        torch.rand(1, 1, 5, 5),
    )
    network[1].eval()
    before = x.clone()
    receptive_field(network, x)
    assert network.training and network[2].training and not network[1].training
    assert torch.equal(x, before) and not vars(x) and not network[0]._forward_hooks


def test_what_has_no_receptive_field_is_said():
    with pytest.raises(UsageError, match="size of the grid must be known"):
        receptive_field(nn.Conv2d(1, 1, 3), InputSpec.grid(1))
    with pytest.raises(UsageError, match=r"needs inputs of shape \(B, C, \*size\)"):
        receptive_field(nn.Linear(3, 2), torch.zeros(1, 3))
    with pytest.raises(UsageError, match=r"no layer '1' is called\. Known: 0"):
        receptive_field(chain(nn.Conv1d(1, 1, 3)), torch.zeros(1, 1, 5), layer="1")
    with pytest.raises(UsageError, match="a unit has 2 indices"):
        receptive_field(nn.Conv2d(1, 1, 3), torch.zeros(1, 1, 5, 5)).of(1)
