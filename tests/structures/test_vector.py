import pytest
import torch

from ansatz.errors import UsageError
from ansatz.spec import InputSpec
from ansatz.structures import Vector, create, names, registry

every_structure = pytest.mark.parametrize("name", names())


@every_structure
def test_a_structure_keeps_the_contract(name):
    """Its networks exist, and what it collates fits what it specifies."""
    from ansatz.networks import registry as networks

    structure = create(name)
    assert structure.name == name and name in registry
    assert structure.network in networks
    assert not structure.linear_network or structure.linear_network in networks
    assert structure.symmetry


def test_collated_rows_are_the_rows():
    rows = torch.randn(5, 3)
    (x,) = Vector().collate(list(rows))
    assert torch.equal(x, rows)
    assert Vector().spec(x) == InputSpec("vector", 3)


def test_codes_are_collated_and_specified():
    rows = [(torch.zeros(2), torch.tensor([1, 4])), (torch.ones(2), torch.tensor([3, 0]))]
    x, codes = Vector().collate(rows)
    assert x.shape == (2, 2) and codes.tolist() == [[1, 4], [3, 0]]
    assert Vector().spec((x, codes)) == InputSpec("vector", 2, (3, 4))


def test_another_shape_is_refused():
    with pytest.raises(UsageError, match=r"shape \(B, D\), or \(x, codes\); got \(3,\)"):
        Vector().spec(torch.zeros(3))
    with pytest.raises(UsageError, match=r"codes must have shape \(2, C\)"):
        Vector().spec((torch.zeros(2, 1), torch.zeros(3, 1)))
    with pytest.raises(UsageError, match="at least one row"):
        Vector().collate([])


def test_an_unknown_structure_suggests_the_nearest():
    with pytest.raises(UsageError, match="Did you mean 'vector'"):
        create("vectors")
