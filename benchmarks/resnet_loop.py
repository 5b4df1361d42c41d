"""The best loop for ResNet-18 on small images that we can write by hand in plain torch.

    python benchmarks/resnet_loop.py

trains by each of its variants in turn (channels first or last, fused or default AdamW, eager or
compiled) and records what a step costs. ``train`` as it stands is the one that
``ansatz bench speed-images`` measures us against: tensors in memory, one permutation per epoch,
channels last, fused AdamW. Compiling takes its time before the first step; the record says after
how many steps that is earned back, if at all.
"""

import argparse
import json
import statistics
import time

import torch
from torch import Tensor, nn


class Block(nn.Module):
    """Two convolutions of 3 x 3 whose result is added to what came in."""

    def __init__(self, before: int, channels: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(before, channels, 3, stride, 1, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU(inplace=True),
            nn.Conv2d(channels, channels, 3, 1, 1, bias=False),
            nn.BatchNorm2d(channels),
        )
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1:
            self.shortcut = nn.Sequential(
                nn.Conv2d(before, channels, 1, stride, bias=False), nn.BatchNorm2d(channels)
            )

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu_(self.body(x) + self.shortcut(x))


class ResNet18(nn.Sequential):
    """Four stages of two blocks after one convolution: 11,173,962 weights for CIFAR-10."""

    def __init__(self, channels: int = 3, classes: int = 10, width: int = 64) -> None:
        stem = nn.Conv2d(channels, width, 3, 1, 1, bias=False)
        layers: list[nn.Module] = [stem, nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
        before = width
        for stage in range(4):
            after = width * 2**stage
            layers += [Block(before, after, 2 if stage else 1), Block(after, after, 1)]
            before = after
        super().__init__(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, classes))


def train(
    network: nn.Module,
    images: Tensor,
    labels: Tensor,
    *,
    batch: int = 64,
    epochs: int = 1,
    rate: float = 1e-3,
    channels_last: bool = True,
    fused: bool = True,
) -> nn.Module:
    """Minimises the cross-entropy by AdamW; ``network`` may be a compiled one."""
    layout = torch.channels_last if channels_last else torch.contiguous_format
    network = network.to(memory_format=layout).train()
    images = images.contiguous(memory_format=layout)
    optimizer = torch.optim.AdamW(network.parameters(), lr=rate, fused=fused or None)
    for _ in range(epochs):
        for rows in torch.randperm(len(images)).split(batch):
            x = images[rows].contiguous(memory_format=layout)
            loss = nn.functional.cross_entropy(network(x), labels[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return network


VARIANTS = {  # what is compiled and the settings of train
    "channels first": (False, {"channels_last": False}),
    "channels last": (False, {"fused": False}),
    "channels last, fused": (False, {}),
    "channels last, fused, compiled": (True, {}),
}


def measure(images: Tensor, labels: Tensor, *, rounds: int, width: int) -> list[dict]:
    """Milliseconds per step of every variant, in turn; the first run of each only warms up."""
    runs, warm = {}, {}
    for name, (compiled, settings) in VARIANTS.items():
        torch.manual_seed(0)
        network = ResNet18(images.shape[1], int(labels.max()) + 1, width)
        made = torch.compile(network) if compiled else network
        runs[name] = lambda n=made, s=settings: train(n, images, labels, **s)
        began = time.perf_counter()
        runs[name]()
        warm[name] = time.perf_counter() - began
    steps, times = -(-len(images) // 64), {name: [] for name in runs}
    processor = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            start, used = time.perf_counter(), time.process_time()
            run()
            times[name].append((time.perf_counter() - start) / steps * 1e3)
            processor[name].append((time.process_time() - used) / steps * 1e3)
    eager = statistics.median(times["channels last, fused"])
    found = []
    for name, each in times.items():
        middle = statistics.median(each)
        # What the first run took beyond the others.
        extra = max(0.0, warm[name] * 1e3 - middle * steps)
        saved = eager - middle
        found.append(
            {
                "name": name,
                "ms_per_step": round(middle, 1),
                "spread": [round(min(each), 1), round(max(each), 1)],
                "processor_ms_per_step": round(statistics.median(processor[name]), 1),
                "first_run_extra_seconds": round(extra / 1e3, 1),
                "steps_until_it_pays": round(extra / saved) if saved > 0 else None,
            }
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--steps", type=int, default=12, help="of 64 images, per round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--width", type=int, default=64, help="channels of the first stage")
    parser.add_argument("--no-record", action="store_true")
    options = parser.parse_args()

    from ansatz.bench.image_task import photographs

    task = photographs(64 * options.steps)
    images, labels = torch.from_numpy(task.first), torch.from_numpy(task.labels)
    found = measure(images, labels, rounds=options.rounds, width=options.width)
    print(json.dumps(found, indent=2))
    if not options.no_record:
        from ansatz.bench.record import write_record

        command = f"python benchmarks/resnet_loop.py --steps {options.steps}"
        write_record(
            "resnet-loop",
            command=f"{command} --rounds {options.rounds} --width {options.width}",
            seed=0,
            results=found,
        )


if __name__ == "__main__":
    main()
