"""What augmentation adds to an epoch of LeNet-5 on MNIST: python benchmarks/augmentation.py.

The trainer runs stretches of an epoch (469 steps of 128 images), with and without the augmentation
that a fit chooses by itself, in turn. ``prefetched`` prepares batches in a background thread, as a
fit does; ``in turn`` prepares them between the steps. Elapsed time is what a user waits; processor
time, of all threads together, is what it costs where no second core is free.
"""

import argparse
import json
import statistics
import time

import torch
from record import write_record

from ansatz import networks
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


def source(rows: Batch, *, varied: bool, prefetched: bool) -> Source:
    augment = default_augmentation(SPEC, examples=len(rows.index)) if varied else None
    prepare = OnBatches(augment, mean=[0.1307], scale=[0.3081])
    made = Transformed(TensorSource(rows, BATCH, seed=SEED), prepare, seed=SEED)
    return Prefetch(made) if prefetched else made


def stretch(data: Source, steps: int, threads: int) -> tuple[float, float]:
    """Elapsed and processor seconds of so many steps."""
    seed = torch.Generator().manual_seed(SEED)
    net = channels_last(networks.create("lenet5", SPEC, 10, generator=seed))
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    step = GradientStep(net, Supervised(Categorical()), optimizer)
    trainer = Trainer(steps=steps, progress=0, device="cpu", threads=threads)
    elapsed, processor = time.perf_counter(), time.process_time()
    trainer.fit(step, data)
    return time.perf_counter() - elapsed, time.process_time() - processor


def measure(rows: Batch, *, prefetched: bool, threads: int, steps: int, repeats: int) -> dict:
    plain = source(rows, varied=False, prefetched=prefetched)
    varied = source(rows, varied=True, prefetched=prefetched)
    stretch(varied, 20, threads)  # warms up
    times = [
        (stretch(varied, steps, threads), stretch(plain, steps, threads)) for _ in range(repeats)
    ]
    elapsed, processor = ([v[k] / p[k] for v, p in times] for k in (0, 1))
    best = [min(each[i][0] for each in times) for i in (0, 1)]
    how = "prefetched" if prefetched else "in turn"
    return {
        "name": f"augmentation of LeNet-5 on MNIST, {how}, {threads} threads",
        "ours": round(best[0] / steps * 1e3, 3),
        "peers": {"without augmentation": round(best[1] / steps * 1e3, 3)},
        "unit": "ms per step of 128 images, the fastest of the repeats",
        "limit": LIMIT,
        "ratio": {"without augmentation": round(statistics.median(elapsed), 3)},
        "ratio_spread": [round(min(elapsed), 3), round(max(elapsed), 3)],
        "processor_ratio": round(statistics.median(processor), 3),
    }


def seconds_of_resampling(rows: Batch) -> float:
    """All 60,000 images through the default augmentation alone, on one thread."""
    data = source(rows, varied=True, prefetched=False)
    start = time.process_time()
    for _ in data.batches(0):
        pass
    return round(time.process_time() - start, 3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=60, help="of a stretch; 469 are an epoch")
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
