"""Measures what augmentation adds to LeNet-5 on MNIST: python benchmarks/augmentation.py.

The trainer runs some steps of 128 images, with and without the default augmentation, in turn.
``prefetched`` prepares batches in a background thread, as a fit does; ``in turn`` prepares them
between the steps. Elapsed time is what a user waits; processor time, of all threads together, is
the cost where no second core is free.
"""

import argparse
import json
import time
from functools import partial

import torch

from ansatz import networks
from ansatz.bench.finding import Bound, Finding
from ansatz.bench.race import race
from ansatz.bench.record import write_record
from ansatz.data import Batch, Prefetch, Source, TensorSource, Transformed, load
from ansatz.data.augmentation import OnBatches, default_augmentation
from ansatz.likelihoods import Categorical
from ansatz.networks.grid_inputs import channels_last
from ansatz.spec import InputSpec
from ansatz.training import GradientStep, Supervised, Trainer

BATCH, SEED, LIMIT = 128, 0, 1.15
SPEC = InputSpec.grid(1, 28, 28)


def images() -> Batch:
    """The training images of MNIST as bytes."""
    data = load("mnist")
    train, _ = data.splits[0]
    labels = torch.tensor([int(label) for label in data.frame["class"].iloc[train]])
    return Batch.of(data.grids[train].load(), labels, torch.ones(len(labels)))


def source(rows: Batch, *, augmented: bool, prefetched: bool) -> Source:
    augment = default_augmentation(SPEC, examples=len(rows.index)) if augmented else None
    prepare = OnBatches(augment, mean=[0.1307], scale=[0.3081])
    made = Transformed(TensorSource(rows, BATCH, seed=SEED), prepare, seed=SEED)
    return Prefetch(made) if prefetched else made


def train(data: Source, steps: int, threads: int) -> None:
    """Trains LeNet-5 for a number of steps."""
    seed = torch.Generator().manual_seed(SEED)
    net = channels_last(networks.create("lenet5", SPEC, 10, generator=seed))
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    step = GradientStep(net, Supervised(Categorical()), optimizer)
    trainer = Trainer(steps=steps, progress=0, device="cpu", threads=threads)
    trainer.fit(step, data)


def measure(rows: Batch, *, prefetched: bool, threads: int, steps: int, repeats: int) -> dict:
    sources = {
        name: source(rows, augmented=augmented, prefetched=prefetched)
        for name, augmented in (("ours", True), ("without augmentation", False))
    }
    runs = {name: partial(train, data, steps, threads) for name, data in sources.items()}
    found = race(runs, rounds=repeats, seed=SEED, threads=threads)
    how = "prefetched" if prefetched else "in turn"
    name = f"augmentation of LeNet-5 on MNIST, {how}, {threads} threads"
    limit = {"without augmentation": Bound(at_most=LIMIT)}
    return Finding.of(name, found, limit, clock="wall", facts={"steps": steps}).to_dict()


def seconds_of_resampling(rows: Batch) -> float:
    """All 60,000 images through the default augmentation alone, on one thread."""
    data = source(rows, augmented=True, prefetched=False)
    start = time.process_time()
    for _ in data.batches(0):
        pass
    return round(time.process_time() - start, 3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=60, help="per run; 469 are an epoch")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    options = parser.parse_args()
    rows = images()
    torch.set_num_threads(1)
    alone = min(seconds_of_resampling(rows) for _ in range(3))
    found = []
    for threads in options.threads:
        torch.set_num_threads(threads)
        for prefetched in (True, False):
            found.append(
                measure(
                    rows,
                    prefetched=prefetched,
                    threads=threads,
                    steps=options.steps,
                    repeats=options.repeats,
                )
            )
            print(json.dumps(found[-1], indent=2), flush=True)
    write_record(
        "augmentation",
        command=" ".join(
            [
                f"python benchmarks/augmentation.py --steps {options.steps}",
                f"--repeats {options.repeats} --threads {' '.join(map(str, options.threads))}",
            ]
        ),
        seed=SEED,
        results=found,
        steps=options.steps,
        repeats=options.repeats,
        seconds_of_all_images_alone=alone,
    )


if __name__ == "__main__":
    main()
