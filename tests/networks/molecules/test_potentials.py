import numpy as np
import pytest
import torch
from torch.testing import assert_close

from ansatz import networks
from ansatz.data import Molecules
from ansatz.structures.molecule.encoder import MoleculeEncoder

CUTOFF = 3.0


def crystal(draw, atoms=6, repeat=1):
    """Random atoms in a skewed box smaller than the cut-off, without close pairs."""
    box = np.diag([2.9, 3.4, 3.1]) + draw.normal(size=(3, 3)) * 0.2
    grid = np.stack(np.meshgrid(*[np.arange(2) / 2] * 3, indexing="ij"), -1).reshape(-1, 3)
    place = grid[draw.permutation(8)[:atoms]] + draw.uniform(-0.1, 0.1, (atoms, 3))
    species = np.array([8, 1, 1, 8, 1, 1])[:atoms]
    return Molecules(place @ box, species, box)


def network_of(name, draw, kinds=2, forces=True, **options):
    spec = MoleculeEncoder(np.array([1, 8])[:kinds], CUTOFF).spec
    generator = torch.Generator().manual_seed(int(draw.integers(1000)))
    network = networks.create(name, spec, 1, forces=forces, generator=generator, **options)
    network = network.double()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, generator=generator)
    network.settle(torch.tensor([[-1.0], [-7.0]])[:kinds])
    return network


def encoded(molecules):
    return MoleculeEncoder(np.array([1, 8]), CUTOFF).inputs(molecules)[0]


def answer(network, molecules):
    with torch.no_grad():
        raw = network(encoded(molecules))
    return raw[:, 0], raw[:, 11:].reshape(len(raw), -1, 3), raw[:, 2:11].reshape(-1, 3, 3)


def moved(molecules, positions, box=None):
    return Molecules(
        positions, molecules.species, molecules.box if box is None else box,
        offsets=molecules.offsets,
    )  # fmt: skip


every_network = pytest.mark.parametrize(
    "name, options",
    [
        ("deeppot", {}),
        ("deeppot", {"degree": 1, "width": 8}),
        ("schnet", {"hidden_channels": 8, "num_filters": 6, "num_interactions": 2}),
    ],
    ids=["deeppot", "degree 1", "schnet"],
)


@pytest.fixture
def draw():
    return np.random.default_rng(0)


@every_network
def test_a_rigid_motion_leaves_the_energy_and_turns_the_forces(name, options, draw):
    network, m = network_of(name, draw, **options), crystal(draw)
    Q, _ = np.linalg.qr(draw.normal(size=(3, 3)))  # a reflection too
    there = moved(m, m.positions @ Q.T + draw.normal(size=3), m.box[0] @ Q.T)
    energy, forces, _ = answer(network, m)
    energy2, forces2, _ = answer(network, there)
    scale = forces.abs().max()
    assert scale > 0.1
    assert_close(energy2, energy, rtol=0, atol=1e-10 * float(energy.abs()))
    assert_close(forces2, forces @ torch.from_numpy(Q.T), rtol=0, atol=1e-10 * float(scale))


@every_network
def test_forces_are_differences_of_the_energy(name, options, draw):
    network, m = network_of(name, draw, **options), crystal(draw)
    _, forces, virial = answer(network, m)
    h = 1e-5
    for atom, axis in [(0, 0), (1, 2), (4, 1)]:
        step = np.zeros_like(m.positions)
        step[atom, axis] = h
        up, down = (answer(network, moved(m, m.positions + s * step))[0] for s in (1, -1))
        assert_close(-(up - down)[0] / (2 * h), forces[0, atom, axis], rtol=1e-6, atol=1e-6)
    strain = draw.normal(size=(3, 3))
    ends = []
    for s in (1, -1):
        F = np.eye(3) + s * h * strain
        ends.append(answer(network, moved(m, m.positions @ F, m.box[0] @ F))[0])
    slope = (virial[0] * torch.from_numpy(strain)).sum()
    assert_close((ends[0] - ends[1])[0] / (2 * h), slope, rtol=1e-6, atol=1e-6)


@every_network
def test_forces_sum_to_zero_and_atoms_swap(name, options, draw):
    network, m = network_of(name, draw, **options), crystal(draw)
    energy, forces, _ = answer(network, m)
    assert_close(forces.sum(1), torch.zeros(1, 3), rtol=0, atol=1e-10 * float(forces.abs().max()))
    order = draw.permutation(6)
    swapped = Molecules(m.positions[order], m.species[order], m.box)
    energy2, forces2, _ = answer(network, swapped)
    assert_close(energy2, energy, rtol=1e-13, atol=0)
    assert_close(forces2, forces[:, order], rtol=0, atol=1e-10 * float(forces.abs().max()))


@every_network
def test_eight_boxes_have_eight_times_the_energy(name, options, draw):
    network, m = network_of(name, draw, **options), crystal(draw)
    shifts = np.stack(np.meshgrid(*[np.arange(2)] * 3), -1).reshape(-1, 1, 3) @ m.box[0]
    large = Molecules((m.positions + shifts).reshape(-1, 3), np.tile(m.species, 8), 2 * m.box[0])
    energy, forces, _ = answer(network, m)
    energy8, forces8, _ = answer(network, large)
    assert_close(energy8, 8 * energy, rtol=1e-10, atol=0)
    assert_close(
        forces8.reshape(8, 6, 3),
        forces.expand(8, 6, 3),
        rtol=0,
        atol=1e-10 * float(forces.abs().max()),
    )


@every_network
def test_energy_and_forces_are_continuous_at_the_cutoff(name, options, draw):
    network = network_of(name, draw, **options)
    x = np.zeros((3, 3, 3))
    x[:, 1, 0] = 1.0
    x[:, 2, 1] = CUTOFF + np.array([-1e-7, 1e-7, 1.0])
    energy, forces, _ = answer(network, Molecules(x, ["O", "H", "H"]))
    assert_close(energy[0], energy[1], rtol=0, atol=1e-9)
    assert_close(forces[0], forces[1], rtol=0, atol=1e-6)


@every_network
def test_a_frame_alone_is_the_frame_in_a_batch(name, options, draw):
    network = network_of(name, draw, **options)
    parts = [crystal(draw), crystal(draw, atoms=3), Molecules([[0.0, 0, 0]], ["O"])]
    together = Molecules.concatenate(parts)
    batch = encoded(together)
    raw = network(batch).detach()
    for b, part in enumerate(parts):
        alone = network(encoded(part)).detach()
        assert_close(
            raw[b : b + 1, : alone.shape[1]], alone, rtol=0, atol=1e-12 * float(alone.abs().max())
        )
        assert (raw[b, alone.shape[1] :] == 0).all()
    some = batch.take_rows(torch.tensor([2, 0]))
    assert_close(network(some).detach(), raw[[2, 0]], rtol=0, atol=1e-11)


@pytest.mark.parametrize("degree", [1, 2])
def test_the_gradient_by_hand_is_that_of_autograd(degree, draw):
    """Values, and the derivatives in the weights that training by forces takes."""
    network, batch = network_of("deeppot", draw, degree=degree), encoded(crystal(draw))
    _, quick = network.gradient(batch, graph=True)
    _, plain = super(type(network), network).gradient(batch, graph=True)
    assert_close(quick, plain)
    weights = [p for p in network.parameters() if p.requires_grad]
    random = torch.randn(quick.shape)
    found = [
        torch.autograd.grad((g * random).sum(), weights, allow_unused=True, materialize_grads=True)
        for g in (quick, plain)
    ]
    assert sum(float(g.abs().sum()) for g in found[0]) > 1
    for ours, theirs in zip(*found, strict=True):
        assert_close(ours, theirs, rtol=1e-9, atol=1e-9)


@every_network
def test_the_energy_has_gradients_in_positions(name, options, draw):
    network, batch = (
        network_of(name, draw, forces=False, **options),
        encoded(crystal(draw, atoms=3)),
    )

    def energy(x):
        return network(batch._replace(positions=x))

    assert torch.autograd.gradcheck(energy, batch.positions.requires_grad_())


def test_the_start_is_the_constants_of_elements(draw):
    spec = MoleculeEncoder(np.array([1, 8]), CUTOFF).spec
    network = networks.create("deeppot", spec, 1, forces=True).double()
    batch = encoded(Molecules.concatenate([crystal(draw) for _ in range(3)]))
    network.start(batch, torch.tensor([[-1.0], [-20_000.0]]), torch.ones(1))
    raw = network(batch).detach()
    assert_close(raw[:, 0], torch.full((3,), -40_004.0))
    assert (raw[:, 11:] == 0).all()
    assert network.float().reference.dtype == torch.float64
    single = batch._replace(positions=batch.positions.float(), shift=batch.shift.float())
    assert_close(network(single).detach()[:, 0], raw[:, 0])


def test_outputs_and_spec_are_checked():
    spec = MoleculeEncoder(np.array([1, 8]), CUTOFF).spec
    with pytest.raises(ValueError, match="forces are those of one energy, got 2 outputs"):
        networks.create("deeppot", spec, 2, forces=True)
    with pytest.raises(
        ValueError, match="deeppot takes molecules, got inputs of structure 'vector'"
    ):
        networks.create("deeppot", 3, 1)


def test_schnet_is_pygs():
    """The same weights, strictly loaded, give the same energies."""
    models = pytest.importorskip("torch_geometric.nn.models")

    draw = np.random.default_rng(0)
    x, z = torch.from_numpy(draw.normal(size=(7, 3)) * 1.5), torch.tensor([8, 1, 1, 8, 1, 6, 1])

    def graph(positions, batch):
        near = torch.cdist(positions, positions)
        pairs = ((near < CUTOFF) & (near > 0)).nonzero().T
        return pairs, near[pairs[0], pairs[1]]

    theirs = models.SchNet(
        hidden_channels=12, num_filters=10, num_interactions=2, num_gaussians=9, cutoff=CUTOFF,
        interaction_graph=graph,
    ).double()  # fmt: skip
    encoder = MoleculeEncoder(np.array([1, 6, 8]), CUTOFF)
    ours = networks.create(
        "schnet", encoder.spec, 1, hidden_channels=12, num_filters=10, num_interactions=2,
        num_gaussians=9,
    ).double()  # fmt: skip
    ours.load_state_dict(theirs.state_dict(), strict=True)
    (batch,) = encoder.inputs(Molecules(x.numpy(), z.numpy()))
    assert_close(ours(batch), theirs(z, x), rtol=1e-10, atol=1e-10)
