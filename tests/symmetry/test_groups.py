"""Every group obeys the axioms of a group and an action; the Haar measure is uniform."""

import math

import pytest
import torch
from torch.testing import assert_close

from ansatz import symmetry
from ansatz.errors import UsageError
from ansatz.symmetry import Permutation, Rotation, Rotation90, Sign, haar_orthogonal


def image(size=9, rows=2):
    return torch.randn(rows, 3, size, size)


def framed():
    """Content that no shift of two cells, made twice, takes out of the frame."""
    return torch.nn.functional.pad(torch.randn(2, 1, 3, 3), (8,) * 4)


def smooth(size=96):
    """A band-limited picture that vanishes well inside the frame."""
    x, y = torch.meshgrid(*[torch.linspace(-1, 1, size)] * 2, indexing="ij")
    bump = torch.exp(-12 * (x**2 + y**2))
    return (bump * (1 + x + torch.sin(4 * y)))[None, None]


# name -> options, an input, tolerance
EXACT = 1e-12
ROWS = {
    "cyclic_shift": ({}, image, EXACT),
    "cyclic_shift by strides": ({"stride": 3}, image, EXACT),
    "shift": ({"fill": "zero"}, framed, EXACT),
    "flip": ({"axes": (-2, -1)}, image, EXACT),
    "rotation90": ({}, image, EXACT),
    "dihedral": ({}, image, EXACT),
    "rotation": ({}, smooth, 0.02),  # interpolated: of second order in the width of a cell
    "permutation": ({}, lambda: torch.randn(2, 7, 3), EXACT),
    "node_permutation": ({}, lambda: torch.randn(2, 6, 6), EXACT),
    "sign": ({"axis": -1}, lambda: torch.randn(2, 5), EXACT),
    "scaling": ({"reach": 3.0}, lambda: torch.randn(2, 5), EXACT),
    "translation": ({}, lambda: torch.randn(2, 7, 3), EXACT),
    "orthogonal": ({}, lambda: torch.randn(2, 7, 4), EXACT),
    "point_rotation": ({}, lambda: torch.randn(2, 7, 3), EXACT),
    "rigid_motion": ({"reflections": True}, lambda: torch.randn(2, 7, 3), EXACT),
    "time_shift": ({}, lambda: torch.randn(2, 8, 3), EXACT),
}
every_group = pytest.mark.parametrize("row", ROWS, ids=ROWS)


def parts(row, count):
    options, make, tolerance = ROWS[row]
    group, x = symmetry.create(row.split()[0], **options), make()
    return group, x, [group.sample(x) for _ in range(count)], {"rtol": 0, "atol": tolerance}


def test_the_likelihoods_are_tried_on_every_group_of_the_registry():
    assert {row.split()[0] for row in ROWS} == set(symmetry.names())


@every_group
def test_the_identity_moves_nothing(row):
    group, x, (g,), near = parts(row, 1)
    e = group.identity(x)
    assert_close(group.act(e, x), x, **near)
    assert_close(group.act(group.compose(e, g), x), group.act(group.compose(g, e), x), **near)


@every_group
def test_the_inverse_undoes(row):
    group, x, elements, near = parts(row, 4)
    for g in elements:
        assert_close(group.act(group.inverse(g), group.act(g, x)), x, **near)
        assert_close(group.act(group.compose(g, group.inverse(g)), x), x, **near)


@every_group
def test_the_action_is_a_homomorphism(row):
    group, x, elements, near = parts(row, 6)
    for g, h in zip(elements[:3], elements[3:], strict=True):
        assert_close(group.act(group.compose(g, h), x), group.act(g, group.act(h, x)), **near)


@every_group
def test_composition_is_associative(row):
    group, x, (a, b, c), near = parts(row, 3)
    left, right = (
        group.compose(group.compose(a, b), c),
        group.compose(a, group.compose(b, c)),
    )
    assert_close(group.act(left, x), group.act(right, x), **near)


@every_group
def test_one_generator_one_element_and_the_global_one_is_left_alone(row):
    group, x, _, _ = parts(row, 0)
    before = torch.get_rng_state()
    first, second = (
        group.act(group.sample(x, torch.Generator().manual_seed(3)), x) for _ in range(2)
    )
    assert torch.equal(first, second) and torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("name, count", [("rotation90", 4), ("dihedral", 8), ("flip", 2)])
def test_all_elements_of_a_finite_group_are_drawn_equally_often(name, count):
    group, x = symmetry.create(name), image(3, 1)
    drawn = 100 * count
    seen: dict[bytes, int] = {}
    for _ in range(drawn):
        key = group.act(group.sample(x), x).numpy().tobytes()
        seen[key] = seen.get(key, 0) + 1
    assert len(seen) == count
    # Chi-square with count - 1 degrees: mean count - 1, variance 2 (count - 1); five of its sds.
    statistic = sum((n - 100) ** 2 / 100 for n in seen.values())
    assert statistic < count - 1 + 5 * math.sqrt(2 * (count - 1))


@pytest.mark.parametrize(
    "name, options, count",
    [("rotation90", {}, 4), ("dihedral", {}, 8), ("flip", {"axes": (2, 3)}, 4), ("sign", {}, 2)],
)
def test_a_small_group_lists_all_its_other_elements(name, options, count):
    group, x = symmetry.create(name, **options), image(3, 1)
    moved = {group.act(g, x).numpy().tobytes() for g in group.others(x)}
    assert len(group.others(x)) == len(moved) == count - 1 and x.numpy().tobytes() not in moved


@pytest.mark.parametrize("dimension", [2, 3, 4])
@pytest.mark.parametrize("proper", [True, False])
def test_haars_moments_are_those_of_the_uniform_likelihood(dimension, proper):
    """E G = 0, E G_ij^2 = 1/D, E G_ij^4 = 3 / (D (D + 2)): each row is uniform on the sphere."""
    S = 3_000
    G = haar_orthogonal(dimension, proper=proper, samples=S)
    assert_close(G @ G.mT, torch.eye(dimension).expand(S, -1, -1))
    if proper:
        assert_close(torch.linalg.det(G), torch.ones(S))
    else:
        assert abs(float((torch.linalg.det(G) > 0).double().mean()) - 0.5) < 5 * 0.5 / S**0.5
    for power, expected in ((1, 0), (2, 1 / dimension), (4, 3 / (dimension * (dimension + 2)))):
        z = (G**power - expected).mean(0) / (G**power).std(0) * S**0.5
        assert z.abs().max() < 5


def test_the_angle_of_a_uniform_rotation_in_space_has_its_density():
    """p(t) = (1 - cos t) / pi on [0, pi], so E cos t = -1/2 and E cos^2 t = 1/2."""
    S = 4_000
    G = haar_orthogonal(3, proper=True, samples=S)
    cos = (G.diagonal(dim1=-2, dim2=-1).sum(-1) - 1) / 2
    for value, expected in ((cos, -0.5), (cos**2, 0.5)):
        assert abs(float(value.mean()) - expected) < 5 * float(value.std()) / S**0.5


def test_a_quarter_turn_needs_no_interpolation():
    x = image(8)
    for k in range(4):
        assert_close(Rotation().act(k * math.pi / 2, x), Rotation90().act(k, x))


def test_rotation_turns_a_wide_image_without_stretching_it():
    x = torch.zeros(1, 1, 21, 41)
    x[..., 10, 24] = 1  # four right of the middle goes to four above it
    turned = Rotation().act(math.pi / 2, x)
    assert_close(turned[0, 0, 6, 20], torch.tensor(1.0))


def test_interpolation_errs_to_second_order_in_the_width_of_a_cell():
    def error(size):
        x, group = smooth(size), Rotation()
        return float((group.act(-0.4, group.act(0.4, x)) - x).abs().max())

    assert error(64) / error(128) == pytest.approx(4, rel=0.15)


def test_a_permutation_puts_each_element_at_its_new_place():
    g, x = torch.randperm(6), torch.randn(2, 6, 3)
    moved = Permutation().act(g, x)
    for i in range(6):
        assert_close(moved[:, g[i]], x[:, i])


def test_a_mask_and_an_adjacency_move_with_their_elements():
    group = symmetry.create("node_permutation")
    x, A = torch.randn(2, 5, 3), torch.randn(2, 5, 5)
    mask = torch.rand(2, 5) < 0.5
    g = group.sample(x)
    moved_x, moved_A, moved_mask = group.move(g, (x, A, mask))
    assert_close(moved_A @ moved_x, Permutation().act(g, A @ x))
    assert torch.equal(moved_mask[:, g], mask)


@pytest.mark.parametrize(
    "call, says",
    [
        (lambda: symmetry.create("rotatoin"), "Did you mean 'rotation'"),
        (lambda: symmetry.create("shift", reach=0), "reach of shift must be 1 or more"),
        (lambda: symmetry.create("shift", fill="x"), "edge or zero, got 'x'"),
        (lambda: symmetry.create("rotation", limit=200), r"\(0, 180\] degrees"),
        (lambda: symmetry.create("scaling", reach=0.5), "above 1"),
        (lambda: symmetry.create("cyclic_shift", stride=0), "1 or more"),
        (lambda: symmetry.create("translation", scale=0), "above 0"),
    ],
)
def test_a_wrong_option_is_named(call, says):
    with pytest.raises(UsageError, match=says):
        call()


@pytest.mark.parametrize(
    "group, element, x, says",
    [
        ("flip", (1,), torch.zeros(2, 3), r"\(B, C, W\), got \(2, 3\)"),
        ("rotation90", 1, torch.zeros(2, 3, 4), r"\(B, C, H, W\), got \(2, 3, 4\)"),
        ("rotation", 1.0, torch.zeros(2, 1, 4, 4, dtype=torch.uint8), "floating point"),
        ("permutation", torch.arange(3), torch.zeros(2, 4), "3 elements needs"),
        ("translation", torch.zeros(3), torch.zeros(2, 4), "3 coordinates"),
    ],
)
def test_what_cannot_be_moved_is_named(group, element, x, says):
    with pytest.raises(ValueError, match=says):
        symmetry.create(group).act(element, x)


def test_one_sign_for_all_or_one_for_each():
    x = torch.randn(3, 40)
    assert set((Sign().act(Sign().sample(x), x) / x).unique().tolist()) < {-1.0, 1.0}
    ratio = Sign(axis=1).act(Sign(axis=1).sample(x), x) / x
    assert torch.equal(ratio, ratio[:1].expand(3, -1)) and len(ratio.unique()) == 2
