"""Leapfrog keeps the energy, Euler's method does not, and the Metropolis test removes the rest."""

from collections.abc import Callable

import torch
from torch import Tensor

from ansatz.claims import Check, Claim, Erratum, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.inference.samplers import Metric, hmc, mala


def measure(
    generator: torch.Generator, *, steps: int = 100, step_size: float = 0.1, chains: int = 4_000
) -> Finding:
    """Energies along both paths from θ = 1, v = 0, and the variance that a sampler finds."""
    mass = 1.0
    leap = energies(leapfrog, step_size, steps, mass)
    euler = energies(explicit_euler, step_size, steps, mass)
    half = energies(leapfrog, step_size / 2, 2 * steps, mass)
    heavy = energies(leapfrog, step_size, steps, 4.0)
    light = energies(printed_drift, step_size, steps, 4.0)
    kept, dropped = variance(generator, chains, True), variance(generator, chains, False)
    error = (2 / chains) ** 0.5
    start = 0.5
    checks = [
        Check(
            f"energy after {steps} steps of {step_size}",
            float(leap[-1]),
            start,
            step_size**2 / 8,
            "the shadow energy: θ²(1 - η²/4) + v² is conserved, so H moves by η²/8 at most",
            wrong=Wrong("explicit Euler", measured=float(euler[-1]), erratum="E6"),
        ),
        Check(
            "energy of Euler's path",
            float(euler[-1]),
            start * (1 + step_size**2) ** steps,
            steps * 8 * 2.0**-52 * float(euler[-1]),
            "rounding: 8 eps per step",
        ),
        Check(
            "energy error over that of half the step",
            float((leap - start).abs().max() / (half - start).abs().max()),
            4.0,
            step_size**2,
            "η²: a path steps over θ = 0 by up to η/2, and misses up to η²/4 of the largest error",
            wrong=Wrong("a first-order method", predicted=2.0),
        ),
        Check(
            "energy with mass 4",
            float(heavy[-1]),
            start,
            step_size**2 / 8,
            "the shadow energy, as above; a heavier mass is slower",
            wrong=Wrong("θ̇ = v without the mass", measured=float(light[-1]), erratum="E6"),
        ),
        Check(
            f"variance of N(0, 1) found by {chains} chains with step 1",
            kept,
            1.0,
            4 * error,
            "4 standard errors, √(2 / chains)",
            wrong=Wrong("no Metropolis test", measured=dropped, erratum="E6"),
        ),
    ]
    table = Table(["step", "leapfrog", "Euler"], [
        [k, float(leap[k]), float(euler[k])] for k in range(0, steps + 1, max(1, steps // 10))
    ])  # fmt: skip
    return Finding(checks, table, {"leap": leap.numpy(), "euler": euler.numpy()})


def leapfrog(theta: Tensor, v: Tensor, size: float, mass: float) -> tuple[Tensor, Tensor]:
    """One step of the sampler's own, with energy θ² / 2."""
    state = hmc.start(theta.reshape(-1, 1), potential)
    metric = Metric.of(torch.tensor([1 / mass], dtype=torch.float64))
    size_of_all = torch.tensor([[size]], dtype=torch.float64)
    end, speed = hmc.leapfrog(state, v.reshape(-1, 1), potential, size_of_all, metric, 1)
    return end.position.reshape(theta.shape), speed.reshape(theta.shape)


def potential(theta: Tensor) -> tuple[Tensor, Tensor]:
    """log p = -θ² / 2 and its slope."""
    return -(theta**2).sum(1) / 2, -theta


def explicit_euler(theta: Tensor, v: Tensor, size: float, mass: float) -> tuple[Tensor, Tensor]:
    """As printed: both from the old point."""
    return theta + size * v, v - size * theta


def printed_drift(theta: Tensor, v: Tensor, size: float, mass: float) -> tuple[Tensor, Tensor]:
    """Leapfrog with the printed drift: the mass forgotten."""
    return leapfrog(theta, v, size, 1.0)


def energies(method: Callable[..., tuple[Tensor, Tensor]], size: float, steps: int,
             mass: float) -> Tensor:  # fmt: skip
    """H = θ² / 2 + v² / (2m) along the path from (1, 0)."""
    theta, v = torch.ones((), dtype=torch.float64), torch.zeros((), dtype=torch.float64)
    found = [theta**2 / 2 + v**2 / (2 * mass)]
    for _ in range(steps):
        theta, v = method(theta, v, size, mass)
        found.append(theta**2 / 2 + v**2 / (2 * mass))
    return torch.stack(found)


def variance(generator: torch.Generator, chains: int, test: bool, *, moves: int = 40) -> float:
    """Of chains that start at the mode and make ``moves`` proposals of 1 step of size 1.

    Without the test the fixed point is 1 / (1 - 1/4) = 4/3, the shadow energy's variance.
    """
    state = mala.start(torch.zeros(chains, 1, dtype=torch.float64), potential)
    metric, one = Metric.of(torch.ones(1, dtype=torch.float64)), torch.ones(1, 1).double()
    for _ in range(moves):
        if test:  # one leapfrog step is the proposal of Langevin's sampler
            state, _ = mala.step(state, potential, mala.Settings(one[0], metric), generator)
        else:
            v = metric.draw(state.position, generator)
            state, _ = hmc.leapfrog(state, v, potential, one, metric, 1)
    return float((state.position**2).mean())


def draw(paper: Figure, finding: Finding) -> None:
    """Both energies over the steps."""
    from ansatz.figures.style import INK, LINEAR, MODEL

    axes, data = paper.subplots(), finding.data
    axes.plot(data["euler"], "--", color=LINEAR, label="explicit Euler (printed)")
    axes.plot(data["leap"], color=MODEL, label="leapfrog")
    axes.axhline(0.5, color=INK, lw=0.7, ls=":", label="energy at the start")
    axes.set(xlabel="steps of size 0.1", ylabel="energy H", ylim=(0, None))
    axes.set_title("leapfrog keeps the energy of an oscillator; Euler's path climbs")
    axes.legend(loc="upper left")


claim = Claim(
    id="leapfrog",
    title="Hamiltonian Monte Carlo needs leapfrog and a Metropolis test",
    statement=(
        "Leapfrog with θ̇ = M⁻¹v keeps the energy within the order of the squared step, and the "
        "Metropolis test removes the bias that remains. Often printed with explicit Euler steps, "
        "whose energy grows by 1 + η² in each step (0.5 becomes 1.352 in 100), without the mass, "
        "or without the test."
    ),
    formula=(
        r"v_{1/2} = v - \tfrac{\eta}{2} \nabla E(\theta), \quad \theta' = \theta + \eta M^{-1} "
        r"v_{1/2}, \quad v' = v_{1/2} - \tfrac{\eta}{2} \nabla E(\theta'), \qquad "
        r"H = E(\theta) + \tfrac12 v^\top M^{-1} v"
    ),
    sources=("E6", "M343"),
    measure=measure,
    reference="Neal (2011), MCMC using Hamiltonian dynamics. https://arxiv.org/abs/1206.1901",
    full={"chains": 100_000},
    errata=(
        Erratum(
            "E6",
            "θ + ηv, v - η∇E(θ), always accepted",
            "leapfrog with θ̇ = M⁻¹v and a Metropolis test",
        ),
    ),
    draw=draw,
)
