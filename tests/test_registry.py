"""Names of members are found however they are written."""

import importlib

import pytest

from ansatz.errors import UsageError
from ansatz.registry import Registry

HOMES = "data.augmentation inference layers likelihoods metrics networks optim outcomes structures"


def registries():
    for home in HOMES.split():
        module = importlib.import_module(f"ansatz.{home}.registry")
        yield from (v for v in vars(module).values() if isinstance(v, Registry))


@pytest.mark.parametrize(
    "name", ["log_normal", "LogNormal", "log-normal", "LOG_NORMAL", "lognormal"]
)
def test_capitals_and_dashes_do_not_matter(name):
    registry = Registry("likelihood", {"log_normal": dict, "normal": list})
    assert registry.get(name) is dict and name in registry
    assert registry.canonical(name) == "log_normal"
    with pytest.raises(UsageError, match="taken"):
        registry.register(name, dict)


def test_no_two_members_of_a_registry_are_one_name():
    for registry in registries():
        plain = [name.lower().replace("_", "").replace("-", "") for name in registry.names()]
        assert len(set(plain)) == len(plain), registry.kind
        assert all(registry.canonical(name) == name for name in registry.names())


def test_an_alias_is_found_and_not_listed():
    registry = Registry(
        "likelihood", {"bernoulli": dict}, aliases={"binary_cross_entropy": "bernoulli"}
    )
    assert registry.get("BinaryCrossEntropy") is dict
    assert registry.names() == ["bernoulli"]


def test_an_unknown_name_suggests_the_nearest():
    registry = Registry("likelihood", {"poisson": dict})
    with pytest.raises(UsageError, match=r"unknown likelihood 'Poison'. Did you mean 'poisson'"):
        registry.get("Poison")
