"""Defines the small GPT of the speed suite, and trains and asks it as each library does."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Predict = Callable[[Tensor], Tensor]  # codes (B, T) to logits (B, T, V)


@dataclass(frozen=True)
class GPTTask:
    """A GPT of 4 blocks of width 128, and random codes to train it on."""

    steps: int = 40
    vocabulary: int = 65
    width: int = 128
    depth: int = 4
    heads: int = 4
    block: int = 64
    batch: int = 12
    rate: float = 1e-3
    clip: float = 1.0

    @cached_property
    def codes(self) -> Tensor:
        """``(steps batch, block + 1)``: a cycle through the vocabulary from random starts."""
        rows = self.steps * self.batch
        start = torch.randint(
            self.vocabulary, (rows, 1), generator=torch.Generator().manual_seed(0)
        )
        return (start + torch.arange(self.block + 1)) % self.vocabulary


def ours(task: GPTTask) -> Predict:
    """Trains our network by our trainer."""
    from ansatz.data import Batch, TensorSource
    from ansatz.likelihoods import Categorical
    from ansatz.training import GradientStep, Supervised, Trainer

    network = our_network(task)
    optimizer = torch.optim.AdamW(network.parameters(), task.rate, fused=True)
    step = GradientStep(network, Supervised(Categorical(), axis=1), optimizer, clip=task.clip)
    target = task.codes[:, 1:]
    rows = Batch((task.codes[:, :-1],), target, torch.ones(target.shape), None,
                 torch.arange(len(target)))  # fmt: skip
    Trainer(steps=task.steps, progress=0, threads=1).fit(step, TensorSource(rows, task.batch))
    return lambda codes: network.eval()(codes).transpose(1, 2)


def our_network(task: GPTTask, length: int | None = None) -> Any:
    """Creates the network of our registry."""
    from ansatz import networks
    from ansatz.spec import InputSpec

    torch.manual_seed(0)
    tokens = InputSpec.sequence(vocabulary=task.vocabulary, length=length or task.block)
    return networks.create(
        "gpt", tokens, task.vocabulary, each=True, width=task.width, depth=task.depth,
        heads=task.heads,
    )  # fmt: skip


class PlainBlock(nn.Module):
    """A block of a GPT in torch's own modules."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        B, T, D = x.shape
        q, k, v = self.qkv(self.ln_1(x)).split(D, -1)
        q, k, v = (part.view(B, T, self.heads, -1).transpose(1, 2) for part in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(B, T, D))
        return x + self.mlp(self.ln_2(x))


class PlainGPT(nn.Module):
    """The same GPT in torch's own modules, with its head tied to the embedding."""

    def __init__(self, task: GPTTask) -> None:
        super().__init__()
        self.tokens = nn.Embedding(task.vocabulary, task.width)
        self.places = nn.Embedding(task.block, task.width)
        self.blocks = nn.Sequential(
            *(PlainBlock(task.width, task.heads) for _ in range(task.depth))
        )
        self.norm = nn.LayerNorm(task.width)
        for name, weight in self.named_parameters():
            if weight.ndim > 1:
                nn.init.normal_(weight, std=0.02)
            elif "bias" in name:
                nn.init.zeros_(weight)

    def forward(self, codes: Tensor) -> Tensor:
        x = self.tokens(codes) + self.places(torch.arange(codes.shape[1]))
        return F.linear(self.norm(self.blocks(x)), self.tokens.weight)


def hand_loop(task: GPTTask) -> Predict:
    """Trains the plain GPT by a loop written for it: clipped gradients, fused AdamW."""
    torch.manual_seed(0)
    network = PlainGPT(task)
    optimizer = torch.optim.AdamW(network.parameters(), task.rate, fused=True)
    for rows in torch.randperm(len(task.codes)).split(task.batch):
        codes = task.codes[rows]
        logits = network(codes[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), codes[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), task.clip)
        optimizer.step()
    return network.eval()


def hugging_face(task: GPTTask, length: int | None = None) -> Any:
    """Creates the GPT-2 of transformers."""
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=task.vocabulary, n_positions=length or task.block, n_embd=task.width,
        n_layer=task.depth, n_head=task.heads, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
        bos_token_id=0, eos_token_id=None, pad_token_id=0,
    )  # fmt: skip
    return GPT2LMHeadModel(config)


def hugging_face_trainer(task: GPTTask) -> Predict:
    """Trains GPT-2 by the Trainer of transformers, without logs, checkpoints and evaluation."""
    import tempfile

    from transformers import Trainer, TrainingArguments
    from transformers.utils import logging

    logging.set_verbosity_error()
    network = hugging_face(task)
    rows = [{"input_ids": row, "labels": row} for row in task.codes[:, :-1]]
    with tempfile.TemporaryDirectory() as folder:
        settings = TrainingArguments(
            folder, max_steps=task.steps, per_device_train_batch_size=task.batch,
            learning_rate=task.rate, lr_scheduler_type="constant", max_grad_norm=task.clip,
            use_cpu=True, report_to="none", logging_strategy="no", save_strategy="no",
            disable_tqdm=True,
        )  # fmt: skip
        Trainer(network, settings, train_dataset=rows).train()
    network.eval()
    return lambda codes: network(codes).logits


TRAINERS = {"ours": ours, "plain torch": hand_loop, "Hugging Face Trainer": hugging_face_trainer}
