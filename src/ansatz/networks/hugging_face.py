"""Folders of Hugging Face: language models read and written, without its library."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ansatz.errors import ModelError, UsageError
from ansatz.networks.checkpoint import Head, Loaded, load_weights, read_weights
from ansatz.networks.registry import create
from ansatz.networks.transfer import head_names
from ansatz.spec import InputSpec
from ansatz.storage.json_file import read_json, shorten, write_json
from ansatz.storage.tensors import write_tensors


class _Kind(NamedTuple):
    network: str  # its name in the registry
    body: str  # the prefix of all names but the heads'
    fields: dict[str, str]  # option of the network -> field of config.json
    activation: tuple[str, str]  # the field, and the value that the network computes
    length: str
    dropout: str


_COMMON = {"width": "hidden_size", "depth": "num_hidden_layers", "heads": "num_attention_heads"}
_KINDS = {
    "bert": _Kind(
        "bert",
        "bert",
        {
            **_COMMON,
            "hidden": "intermediate_size",
            "types": "type_vocab_size",
            "eps": "layer_norm_eps",
        },
        ("hidden_act", "gelu"),
        "max_position_embeddings",
        "hidden_dropout_prob",
    ),
    "distilbert": _Kind(
        "distilbert",
        "distilbert",
        {"width": "dim", "depth": "n_layers", "heads": "n_heads", "hidden": "hidden_dim"},
        ("activation", "gelu"),
        "max_position_embeddings",
        "dropout",
    ),
    "gpt2": _Kind(
        "gpt",
        "transformer",
        {
            "width": "n_embd",
            "depth": "n_layer",
            "heads": "n_head",
            "hidden": "n_inner",
            "eps": "layer_norm_epsilon",
        },
        ("activation_function", "gelu_new"),
        "n_positions",
        "resid_pdrop",
    ),
}
_COMPUTED = {  # fields that change what a network computes, and the one value that ours computes
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
}
_BUFFERS = re.compile(r"(^|\.)(position_ids|attn\.bias|attn\.masked_bias)$")  # not weights
_BODIES = re.compile(r"(embeddings|encoder|pooler|transformer|wte|wpe|h|ln_f)\.")


def read_hugging_face(
    folder: str | Path,
    outputs: int | None = None,
    *,
    each: bool = False,
    head: Head = "reset",
    vocabulary: int | None = None,
    generator: torch.Generator | None = None,
) -> tuple[nn.Module, Loaded]:
    """Builds the network of a Hugging Face folder and gives it the weights that lie there.

    It reads ``config.json`` and ``model.safetensors`` (or its parts by ``.index.json``, or
    ``pytorch_model.bin`` by torch's reader without code). All names and shapes must agree but for
    the head. Nothing is downloaded, and code that a folder names (``auto_map``) is not run.

    Args:
        folder: with ``model_type`` bert, distilbert or gpt2 in its ``config.json``.
        outputs: :math:`P`; not given for a language model, which needs gpt2.
        each: one answer for each token.
        head: ``"reset"`` starts the last maps anew, ``"keep"`` takes those of the folder if they
            fit, ``"strict"`` demands them.
        vocabulary: number of tokens of your tokenizer, to be compared with the embeddings.
        generator: where the head's weights are drawn from; torch's global one when not given.

    Returns:
        The network and the report of what was loaded.

    Raises:
        ModelError: the folder is damaged, of another kind, or does not fit.

    Example:
        >>> import tempfile
        >>> from ansatz.networks import GPT, read_hugging_face, write_hugging_face
        >>> from ansatz.spec import InputSpec
        >>> tokens = InputSpec.sequence(vocabulary=9, length=8)
        >>> model = GPT(tokens, 9, width=8, depth=1, heads=2, each=True)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = write_hugging_face(folder + "/gpt", model)
        ...     print(read_hugging_face(folder + "/gpt")[1])
        gpt: 16 tensors loaded
    """
    described = describe_hugging_face(folder)
    spec = described.spec
    described.check_vocabulary(spec.vocabulary if vocabulary is None else vocabulary)
    if outputs is None and described.network != "gpt":
        raise UsageError(f"a {described.network} needs the number of outputs.")
    P, each = (spec.vocabulary, True) if outputs is None else (outputs, each)
    options = {**described.options, "each": each}
    network = create(described.network, spec, P, generator=generator, **options)
    return network, load_hugging_face(network, folder, head=head)


class Described(NamedTuple):
    """The network that the ``config.json`` of a folder describes.

    Args:
        folder: its name.
        network: by name.
        options: of its factory.
        spec: of its inputs: number of tokens and of positions.
        dropout: with which it was trained.
        padding: the code of the padding.
    """

    folder: str
    network: str
    options: dict[str, Any]
    spec: InputSpec
    dropout: float
    padding: int | None

    def check_vocabulary(self, size: int) -> None:
        """Refuses a tokenizer that is not that of the embeddings.

        Embeddings may be up to 127 more than tokens: their number is often rounded up to a
        multiple of 64 or 128.
        """
        tokens = self.spec.vocabulary
        if not 0 <= tokens - size < (128 if tokens % 64 == 0 else 1):
            raise ModelError(
                f"{self.folder}: its embeddings are for {tokens} tokens, the vocabulary has "
                f"{size}; take the tokenizer of the same folder."
            )


def describe_hugging_face(folder: str | Path) -> Described:
    """Reads the ``config.json`` of a folder; what the network would compute otherwise is refused.

    Args:
        folder: with ``model_type`` bert, distilbert or gpt2.
    """
    folder = Path(folder)
    if not (folder / "config.json").is_file():
        raise ModelError(f"{folder}: no config.json: not a folder of Hugging Face.")
    config = read_json(folder / "config.json")
    kind, options = _options(folder.name, config)
    tokens, length = (_whole(folder.name, config, field) for field in ("vocab_size", kind.length))
    dropout, padding = config.get(kind.dropout, 0.1), config.get("pad_token_id")
    if not isinstance(dropout, int | float) or not 0 <= dropout < 1:
        raise ModelError(f"{folder.name}: config.json has {kind.dropout} {shorten(str(dropout))}.")
    spec = InputSpec.sequence(vocabulary=tokens, length=length)
    padding = padding if isinstance(padding, int) else None
    return Described(folder.name, kind.network, options, spec, float(dropout), padding)


def load_hugging_face(network: nn.Module, folder: str | Path, *, head: Head = "reset") -> Loaded:
    """Gives the weights of a folder to the network that it describes, strictly.

    A folder without the pooler of a bert, as of a masked language model, leaves that to the head.

    Args:
        network: changed in place; it may have adapters, which stay as they are.
        folder: of Hugging Face.
        head: see :func:`read_hugging_face`.
    """
    folder = Path(folder)
    kind = next(each for each in _KINDS.values() if each.network == type(network).__name__.lower())
    found = {
        name: value
        for key, value in _tensors(folder).items()
        if (name := _canonical(key, kind)) is not None
    }
    _check_tie(folder.name, network, found)
    pooler = "bert.pooler"
    own = any(name.startswith(f"{pooler}.") for name, _ in network.named_parameters())
    if own and head == "reset" and not any(key.startswith(f"{pooler}.") for key in found):
        network.heads = (pooler, *head_names(network))  # type: ignore[assignment]
    return load_weights(network, found, head=head)._replace(file=folder.name)


def _options(name: str, config: Any) -> tuple[_Kind, dict[str, Any]]:
    """The kind of network and its options."""
    model_type = config.get("model_type") if isinstance(config, Mapping) else None
    if not isinstance(model_type, str) or model_type not in _KINDS:
        raise ModelError(
            f"{name}: config.json has model_type {shorten(str(model_type))}, "
            f"known are {', '.join(_KINDS)}."
        )
    kind = _KINDS[model_type]
    for field, only in {**dict([kind.activation]), **_COMPUTED}.items():
        if config.get(field, only) != only:
            raise ModelError(
                f"{name}: config.json has {field} {shorten(str(config[field]))}, only {only} is "
                "known."
            )
    options: dict[str, Any] = {}
    for option, field in kind.fields.items():
        if option == "eps":
            options.update({"eps": float(config[field])} if field in config else {})
        elif config.get(field) is not None or option != "hidden":
            options[option] = _whole(name, config, field)
    return kind, options


def _whole(name: str, config: Mapping[str, Any], field: str) -> int:
    value = config.get(field)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ModelError(
            f"{name}: config.json needs a whole number as {field}, got {shorten(str(value))}."
        )
    return value


def _tensors(folder: Path) -> dict[str, Tensor]:
    """The weights in any of the forms that Hugging Face writes."""
    if (folder / "model.safetensors").exists():
        return read_weights(folder / "model.safetensors")
    index = folder / "model.safetensors.index.json"
    if index.exists():
        listed = read_json(index).get("weight_map", {})
        files = sorted({str(file) for file in listed.values()})
        if any(Path(file).name != file for file in files):
            raise ModelError(f"{folder.name}: its index names files outside of the folder.")
        return {k: v for file in files for k, v in read_weights(folder / file).items()}
    if (folder / "pytorch_model.bin").exists():
        return read_weights(folder / "pytorch_model.bin")
    raise ModelError(f"{folder.name}: it has neither model.safetensors nor pytorch_model.bin.")


def _canonical(key: str, kind: _Kind) -> str | None:
    """The network's own name of a tensor; None for buffers that older files hold."""
    if _BUFFERS.search(key):
        return None
    key = re.sub(r"LayerNorm\.gamma$", "LayerNorm.weight", key)
    key = re.sub(r"LayerNorm\.beta$", "LayerNorm.bias", key)
    inside = key.startswith(f"{kind.body}.") and not key.startswith("transformer.layer.")
    return key if inside or not _BODIES.match(key) else f"{kind.body}.{key}"


def _check_tie(name: str, network: nn.Module, found: Mapping[str, Tensor]) -> None:
    head, own = found.get("lm_head.weight"), found.get("transformer.wte.weight")
    if getattr(network, "tied", False) and head is not None and own is not None:
        if head.shape != own.shape or not torch.equal(head, own):
            raise ModelError(f"{name}: its lm_head differs from its embeddings; gpt ties them.")


def write_hugging_face(folder: str | Path, network: nn.Module) -> Path:
    """Writes a folder that Hugging Face's ``from_pretrained`` loads, with the same logits.

    Args:
        folder: a new folder, or one without these files.
        network: a ``gpt``, ``bert`` or ``distilbert``.

    Returns:
        The folder.

    Example:
        >>> import tempfile
        >>> from ansatz.networks import BERT, write_hugging_face
        >>> from ansatz.spec import InputSpec
        >>> model = BERT(InputSpec.sequence(vocabulary=9, length=8), 2, width=8, heads=2)
        >>> with tempfile.TemporaryDirectory() as place:
        ...     sorted(file.name for file in write_hugging_face(place, model).iterdir())
        ['config.json', 'model.safetensors']
    """
    config = hugging_face_config(network)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "config.json", config)
    write_tensors(folder / "model.safetensors", network.state_dict())
    return folder


def is_hugging_face(network: nn.Module) -> bool:
    """Tests whether a network has the names and the computation of one of Hugging Face's."""
    return type(network).__name__.lower() in {kind.network for kind in _KINDS.values()}


def hugging_face_config(
    network: Any, *, padding: int | None = 0, labels: list[str] | None = None
) -> dict[str, Any]:
    """The ``config.json`` of a network.

    Args:
        network: a ``gpt``, ``bert`` or ``distilbert``.
        padding: the code of the padding, if there is one.
        labels: names of the outputs, where they are classes.
    """
    name = type(network).__name__.lower()
    if not is_hugging_face(network):
        raise UsageError(f"a folder of Hugging Face holds a gpt, bert or distilbert, got {name}.")
    model_type, kind = next((key, kind) for key, kind in _KINDS.items() if kind.network == name)
    config: dict[str, Any] = {
        field: _SIZES[name][option](network) for option, field in kind.fields.items()
    }
    config |= {
        "model_type": model_type,
        "architectures": [_architecture(name, network)],
        "vocab_size": network.vocabulary,
        kind.length: network.length,
        kind.activation[0]: kind.activation[1],
        "pad_token_id": padding,
    }
    outputs = _outputs(network)
    if outputs is not None:
        named = labels or [f"LABEL_{k}" for k in range(outputs)]
        config |= {
            "id2label": {str(k): label for k, label in enumerate(named)},
            "label2id": {label: k for k, label in enumerate(named)},
        }
        if labels is not None and not network.each:
            config["problem_type"] = "single_label_classification"
    return config


def _outputs(network: Any) -> int | None:
    heads = network.heads
    return int(network.get_submodule(heads[-1]).out_features) if heads else None


def _architecture(name: str, network: Any) -> str:
    start = {"gpt": "GPT2", "bert": "Bert", "distilbert": "DistilBert"}[name]
    if not network.heads:
        return f"{start}LMHeadModel"
    return f"{start}For{'Token' if network.each else 'Sequence'}Classification"


_Size = Callable[[Any], Any]
_SIZES: dict[str, dict[str, _Size]] = {
    "gpt": {
        "width": lambda net: net.transformer["wte"].embedding_dim,
        "depth": lambda net: len(net.transformer["h"]),
        "heads": lambda net: net.transformer["h"][0].attn.heads,
        "hidden": lambda net: net.transformer["h"][0].mlp.c_fc.weight.shape[1],
        "eps": lambda net: net.transformer["ln_f"].eps,
    },
    "bert": {
        "width": lambda net: net.classifier.in_features,
        "depth": lambda net: len(net.bert["encoder"]["layer"]),
        "heads": lambda net: net.bert["encoder"]["layer"][0].heads,
        "hidden": lambda net: net.bert["encoder"]["layer"][0].output["dense"].in_features,
        "types": lambda net: net.bert["embeddings"]["token_type_embeddings"].num_embeddings,
        "eps": lambda net: net.bert["embeddings"]["LayerNorm"].eps,
    },
    "distilbert": {
        "width": lambda net: net.classifier.in_features,
        "depth": lambda net: len(net.distilbert["transformer"]["layer"]),
        "heads": lambda net: net.distilbert["transformer"]["layer"][0].heads,
        "hidden": lambda net: net.distilbert["transformer"]["layer"][0].ffn["lin1"].out_features,
    },
}
