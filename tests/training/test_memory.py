import subprocess
import sys

import pytest
import torch

from ansatz.training.gradient_step import is_out_of_memory

LIMITED = """
import resource, torch
from torch import nn
from ansatz.data import Batch, TensorSource
from ansatz.likelihoods import Normal
from ansatz.training import GradientStep, Supervised, Trainer

torch.set_num_threads(1)
x = torch.randn(4096, 8)
source = TensorSource(Batch.of(x, x[:, 0]), 4096, shuffle=False)


def make():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(8, 8192), nn.ReLU(), nn.Linear(8192, 1))  # 134 MB a layer
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
    return GradientStep(network, Supervised(Normal(dispersion=1.0)), optimizer)


make().step(next(source.batches(0))._replace(weight=torch.ones(4096)))  # loads what is lazy
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 150 * 2**20, resource.RLIM_INFINITY))
step = make()
history = Trainer(steps=2, progress=0, device="cpu", threads=1).fit(step, source)
print(step.accumulate, len(history.notes), history.steps)
"""


@pytest.mark.parametrize(
    "error, expected",
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"), True),
        (MemoryError(), True),
        (RuntimeError("MPS backend out of memory (MPS allocated: 8 GB)"), True),
        (RuntimeError("[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate "
                      "memory: you tried to allocate 8 bytes. Error code 12"), True),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
        (ValueError("out of memory"), False),
    ],
)  # fmt: skip
def test_too_little_memory_is_reported_from_other_errors(error, expected):
    assert is_out_of_memory(error) == expected


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="RLIMIT_AS is Linux's")
def test_a_host_with_too_little_memory_trains_in_smaller_pieces():
    done = subprocess.run(
        [sys.executable, "-c", LIMITED], capture_output=True, text=True, timeout=250
    )
    assert done.returncode == 0, done.stderr
    accumulate, notes, steps = map(int, done.stdout.split())
    assert accumulate >= 2 and notes >= 1 and steps == 2
