"""A fitted model of texts as a folder that Hugging Face's libraries load, with the same logits."""

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ansatz.errors import UsageError
from ansatz.fitting.contracts.inference import Predictive
from ansatz.fitting.model import Model, Trained
from ansatz.layers.lora import LoRA, merge
from ansatz.networks.checkpoint import adapted_maps
from ansatz.networks.hugging_face import hugging_face_config, is_hugging_face
from ansatz.storage.json_file import write_json
from ansatz.storage.tensors import write_tensors

_TASKS = {False: "SEQ_CLS", True: "TOKEN_CLS"}


class Logits(NamedTuple):
    """The affine map from a likelihood's raw numbers to logits: matrix @ raw + bias."""

    matrix: Tensor  # (K, P)
    bias: Tensor  # (K,)
    labels: list[str] | None  # of classes; None where logits are the raw numbers


def export_folder(model: Model, folder: str | Path, *, merged: bool = False) -> list[str]:
    """Writes a fitted network with its tokenizer as a folder of Hugging Face.

    Its logits are those of the model: shift and scale of the objective are part of the last map,
    and the softmax of the logits gives the model's probabilities of classes. A network with an
    adapter is written as PEFT writes one, to be put on the weights that the fit began with.

    Args:
        model: of one bert, distilbert or gpt on texts.
        folder: to be written.
        merged: adds adapters to the weights, for a folder that needs nothing else.

    Returns:
        Notes on what the logits are.
    """
    tokens = getattr(model.encoder, "tokens", None)
    trained = _one_network(model)
    network = trained.network
    if tokens is None or not is_hugging_face(network):
        raise UsageError(
            "a folder of Hugging Face holds a bert, distilbert or gpt on tokens, not "
            f"{trained.name}."
        )
    if getattr(network, "pooled", False) and not network.each:
        raise UsageError(
            "transformers has no class that reads the mean state; fit with --set pooling=first."
        )
    if model.has_offset:
        raise UsageError("transformers takes no offset.")
    logits = _logits(model, trained)
    adapted = adapted_maps(network)
    plain = merge(network) if merged or not adapted else copy.deepcopy(network)
    _fold(plain, trained, logits)
    place, padding = Path(folder), _padding(tokens)
    place.mkdir(parents=True, exist_ok=True)
    notes = []
    if logits.labels is None and plain.heads:
        notes.append(f"the logits are the raw numbers of {trained.likelihood.name}.")
    if adapted and not merged:
        base = model.task.settings.get("pretrained")
        notes += _write_adapter(place, plain, logits, base)
    else:
        config = hugging_face_config(plain, padding=padding, labels=logits.labels)
        write_json(place / "config.json", config, overwrite=True)
        write_tensors(place / "model.safetensors", plain.state_dict(), overwrite=True)
    write_json(place / "tokenizer.json", tokens.state(), overwrite=True)
    known = _special(tokens)
    about = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": model.encoder.length}  # type: ignore[attr-defined]
    write_json(place / "tokenizer_config.json", {**about, **known}, overwrite=True)
    return notes


def _one_network(model: Model) -> Trained:
    found = model.posterior.networks
    if len(found) != 1:
        raise UsageError(
            f"a folder of Hugging Face holds one network, this model has {len(found)}: fit with "
            "--inference point."
        )
    return found[0]


def _logits(model: Model, trained: Trained) -> Logits:
    """The map from raw numbers to logits of classes; raw numbers themselves of other outcomes."""
    assert trained.objective.shift is not None
    count = trained.objective.shift.numel()
    plain = Logits(torch.eye(count).double(), torch.zeros(count).double(), None)
    labels = model.outcome.labels
    if labels is None:
        return plain

    def against_first(raw: Tensor) -> Tensor:
        served = model.outcome.serve(Predictive(model.likelihood, raw))
        found: Tensor = model.of_classes.probabilities(served).log()
        return found - found[:, :1]

    generator = torch.Generator().manual_seed(0)
    raw = torch.randn(8, count, generator=generator, dtype=torch.float64)
    bias = against_first(torch.zeros(1, count).double())[0]
    matrix = (against_first(torch.eye(count).double()) - bias).T
    if not torch.allclose(against_first(raw), raw @ matrix.T + bias, atol=1e-8):
        return plain  # such as ordered classes, whose probabilities are no softmax
    return Logits(matrix, bias, [str(label) for label in labels.tolist()])


def _fold(network: Any, trained: Trained, logits: Logits) -> None:
    """Makes shift, scale and the logits part of the last map, in place."""
    objective = trained.objective
    assert objective.shift is not None and objective.scale is not None
    shift, scale = (part.flatten().double() for part in (objective.shift, objective.scale))
    if not network.heads:  # a language model, whose last map is its embedding
        if bool((shift != shift[0]).any()) or bool((scale != 1).any()):
            raise UsageError("transformers' language model has no shift of its logits.")
        return
    head = network.get_submodule(network.heads[-1])
    weight = head.weight.detach().double()
    before = torch.zeros(len(shift)).double() if head.bias is None else head.bias.detach().double()
    bias = logits.matrix @ (shift + scale * before) + logits.bias
    weight = logits.matrix @ (scale.unsqueeze(1) * weight)
    made = nn.Linear(head.in_features, len(bias), bias=head.bias is not None, device="meta")
    made.weight = nn.Parameter(weight.to(head.weight.dtype))
    if head.bias is not None:
        made.bias = nn.Parameter(bias.to(head.weight.dtype))
    else:  # GPT-2's has none: the norm before it, which nothing else reads, moves by d, W d = bias
        norm = network.transformer["ln_f"]
        move = torch.linalg.lstsq(weight, bias.unsqueeze(1), driver="gelsd").solution[:, 0]
        norm.bias.data += move.to(norm.bias.dtype)
    network.add_module(network.heads[-1], made)


def _write_adapter(place: Path, network: Any, logits: Logits, base: Any) -> list[str]:
    """An adapter as PEFT writes it, the last maps with it."""
    if base is None:
        raise UsageError("an adapter needs the weights it was made for; write it with --merge.")
    heads = list(network.heads)
    heads += ["pooler"] if "pooler" in getattr(network, "bert", {}) else []
    if network.get_submodule(network.heads[-1]).bias is None:  # then the norm before it moved
        heads.append("ln_f")
    parts = {name: part for name, part in network.named_modules() if isinstance(part, LoRA)}
    first = next(iter(parts.values()))
    rank = first.A.shape[0]
    state = {f"{name}.lora_A.weight": part.A.detach() for name, part in parts.items()}
    state |= {f"{name}.lora_B.weight": part.B.detach() for name, part in parts.items()}
    for name, part in network.named_modules():
        if name.split(".")[-1] in heads:
            state |= {f"{name}.{key}": value for key, value in part.state_dict().items()}
    named = {f"base_model.model.{name}": value.contiguous() for name, value in state.items()}
    config = {
        "peft_type": "LORA",
        "task_type": _TASKS[bool(network.each)],
        "base_model_name_or_path": str(base),
        "r": rank,
        "lora_alpha": first.scale * rank,
        "lora_dropout": 0.0,
        "bias": "none",
        "fan_in_fan_out": bool(getattr(first.linear, "transposed", False)),
        "target_modules": sorted({name.split(".")[-1] for name in parts}),
        "modules_to_save": heads,
        "inference_mode": True,
    }
    write_json(place / "adapter_config.json", config, overwrite=True)
    write_tensors(place / "adapter_model.safetensors", named, overwrite=True)
    count = len(logits.bias)
    return [f"an adapter for {base}, which peft loads on a model with num_labels={count}."]


_NAMES: Mapping[str, tuple[str, ...]] = {
    "pad_token": ("[PAD]", "<pad>", "<|endoftext|>"),
    "unk_token": ("[UNK]", "<unk>", "<|endoftext|>"),
    "cls_token": ("[CLS]",),
    "sep_token": ("[SEP]",),
    "mask_token": ("[MASK]",),
    "eos_token": ("<|endoftext|>",),
}


def _special(tokens: Any) -> dict[str, str]:
    """The special tokens by what they are for."""
    found = {
        use: next((each for each in names if tokens.tokenizer.token_to_id(each) is not None), None)
        for use, names in _NAMES.items()
    }
    return {use: name for use, name in found.items() if name is not None}


def _padding(tokens: Any) -> int | None:
    """The code of the padding; of a tokenizer without one that of the end of a text."""
    name = _special(tokens).get("pad_token")
    return None if name is None else int(tokens.tokenizer.token_to_id(name))
