"""The random numbers of a fit: its own, saved with it, and gone when it ends."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from ansatz.seeds import derive


@contextmanager
def own_randomness(seed: int, device: torch.device) -> Iterator[None]:
    """Seeds torch's global generators inside; outside, the user's random state is as it was.

    Torch's dropout draws from the global generators; there is no other way to reach it.
    """
    kept = random_state(device)
    try:
        torch.default_generator.manual_seed(derive(seed, "fit"))
        if device.type == "cuda":
            with torch.cuda.device(device):
                torch.cuda.manual_seed(derive(seed, "fit"))
        elif device.type == "mps":
            torch.mps.manual_seed(derive(seed, "fit"))
        yield
    finally:
        set_random_state(kept, device)


def seed_step(
    seed: int, rank: int, number: int, device: torch.device, owned: dict[str, torch.Generator]
) -> None:
    """Random numbers of one process and step, a pure function of (seed, rank, number).

    Each process of several draws its own dropout masks; since the stream begins anew with every
    step, a checkpoint by one process is enough to resume them all.
    """
    value = derive(seed, "fit", rank, number)
    torch.default_generator.manual_seed(value)
    if device.type == "cuda":
        torch.cuda.default_generators[device.index or 0].manual_seed(value)
    for name, generator in owned.items():
        generator.manual_seed(derive(value, name))


def owned_generators(*modules: nn.Module) -> dict[str, torch.Generator]:
    """The generators that parts of the modules own, by a name that does not change."""
    return _owned(modules)


def random_state(device: torch.device, *modules: nn.Module) -> dict[str, Tensor]:
    """The state of torch's generators, and of any generator that a module owns."""
    state = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        state["cuda"] = torch.cuda.get_rng_state(device)
    elif device.type == "mps":
        state["mps"] = torch.mps.get_rng_state()
    return state | {name: g.get_state() for name, g in _owned(modules).items()}


def set_random_state(state: dict[str, Any], device: torch.device, *modules: nn.Module) -> None:
    """Restores what ``random_state`` gave."""
    torch.set_rng_state(state["cpu"])
    if "cuda" in state and device.type == "cuda":
        torch.cuda.set_rng_state(state["cuda"], device)
    elif "mps" in state and device.type == "mps":
        torch.mps.set_rng_state(state["mps"])
    for name, owned in _owned(modules).items():
        if name in state:
            owned.set_state(state[name])


def _owned(modules: tuple[nn.Module, ...]) -> dict[str, torch.Generator]:
    return {
        f"{number}.{name}.{attribute}": value
        for number, module in enumerate(modules)
        for name, part in module.named_modules()
        for attribute, value in vars(part).items()
        if isinstance(value, torch.Generator)
    }
