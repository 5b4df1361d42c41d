"""What the trainer costs per step beside a bare loop: python benchmarks/trainer_overhead.py.

Both train the same small network on the same batches with the same optimizer and end with the same
weights, bit for bit. They alternate on one thread; processor time is measured.
"""

import argparse
import json
from collections.abc import Callable

import torch
from torch import Tensor, nn

from ansatz.bench.finding import Bound, Finding
from ansatz.bench.race import race
from ansatz.bench.record import write_record
from ansatz.data import Batch, TensorSource
from ansatz.likelihoods import Normal
from ansatz.training import GradientStep, Supervised, Trainer

ROWS, FEATURES, SEED = 20_000, 8, 0
LIMIT = Bound(at_most=1.5)


def source(batch_size: int) -> TensorSource:
    generator = torch.Generator().manual_seed(SEED)
    x = torch.randn(ROWS, FEATURES, generator=generator)
    return TensorSource(Batch.of(x, x[:, 0] * x[:, 1]), batch_size, seed=SEED)


def network(width: int) -> nn.Module:
    torch.manual_seed(SEED)
    layers = nn.Linear(FEATURES, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
    return nn.Sequential(*layers, nn.Linear(width, 1))


def bare(net: nn.Module, data: TensorSource, steps: int) -> None:
    likelihood = Normal(dispersion=1.0)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    done = epoch = 0
    while done < steps:
        for batch in data.batches(epoch):
            optimizer.zero_grad()
            loss = likelihood.loss(net(*batch.inputs), batch.target).mean()
            loss.backward()
            optimizer.step()
            done += 1
            if done == steps:
                return
        epoch += 1


def ours(net: nn.Module, data: TensorSource, steps: int) -> None:
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    step = GradientStep(net, Supervised(Normal(dispersion=1.0)), optimizer)
    Trainer(steps=steps, progress=0, device="cpu", threads=1).fit(step, data)


def measure(width: int, batch_size: int, steps: int, repeats: int) -> dict[str, object]:
    data = source(batch_size)

    def trained(loop: Callable[[nn.Module, TensorSource, int], None]) -> Tensor:
        net = network(width)
        loop(net, data, steps)
        return torch.cat([p.detach().flatten() for p in net.parameters()])

    runs = {"ours": lambda: trained(ours), "bare loop": lambda: trained(bare)}
    found = race(runs, rounds=repeats, seed=SEED)
    same = torch.equal(found.results["ours"], found.results["bare loop"])
    name = f"trainer overhead, width {width}, batch {batch_size}"
    facts = {"steps": steps, "same_weights": same}
    return Finding.of(name, found, {"bare loop": LIMIT}, facts=facts).to_dict()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    torch.set_num_threads(1)
    found = [
        measure(width, batch, options.steps, options.repeats)
        for width, batch in ((16, 32), (64, 256), (256, 256))
    ]
    write_record(
        "trainer-overhead",
        command="python benchmarks/trainer_overhead.py",
        seed=SEED,
        results=found,
        steps=options.steps,
        repeats=options.repeats,
    )
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
