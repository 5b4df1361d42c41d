import pytest

from ansatz.errors import UsageError
from ansatz.layers import activations, initializers, norms, numeric_embeddings, registry
from ansatz.layers.registry import functions

FAMILIES = [activations, functions, initializers, norms, numeric_embeddings, registry]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.kind)
def test_every_name_leads_to_something_with_a_summary(family):
    assert family.names()
    for name in family.names():
        entry = family.describe(name)
        assert callable(family.get(name)) and len(entry.summary) > 5, name


@pytest.mark.parametrize("name", ["os.system", "builtins:eval", "torch.nn:ReLU", "__class__"])
def test_a_name_cannot_reach_python_objects(name):
    for family in FAMILIES:
        with pytest.raises(UsageError, match=f"unknown {family.kind}"):
            family.create(name)


def test_a_slip_of_spelling_is_answered_by_the_nearest_name():
    with pytest.raises(UsageError, match="Did you mean 'leaky_relu'"):
        activations.create("leaky_rulu")
    with pytest.raises(UsageError, match="Its arguments: beta, learned"):
        activations.create("swish", gamma=1)
