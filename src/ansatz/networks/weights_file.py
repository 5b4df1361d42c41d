"""Files of weights, of torch and of safetensors: tensors by name, never code."""

import io
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ansatz.errors import ModelError
from ansatz.storage.disk import read_bytes
from ansatz.storage.json_file import shorten
from ansatz.storage.tensors import read_tensors

LIMIT_BYTES = 4 * 2**30  # of a file, and of what it unpacks to
_TORCH = (".pth", ".pt", ".tar")
_NESTED = ("state_dict", "model_state_dict", "model", "network")  # where programs put the weights
_DEPTH = 16  # wrappers around the weights or their names; a file from anyone could have no end
_PREFIXES = ("module.", "model.", "network.", "_orig_mod.")  # what wrappers put before each name


def read_weights(path: str | Path, *, limit_bytes: int = LIMIT_BYTES) -> dict[str, Tensor]:
    """The named tensors of a ``.safetensors``, ``.pth`` or ``.pt`` file, nothing else.

    Args:
        path: the file.
        limit_bytes: larger files are refused.

    Example:
        >>> import tempfile, torch
        >>> from ansatz.networks import read_weights
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     saved = {"state_dict": {"module.w": torch.ones(2)}, "epoch": 3}
        ...     torch.save(saved, folder + "/a.pt")
        ...     read_weights(folder + "/a.pt")
        {'w': tensor([1., 1.])}
    """
    name, suffix = Path(path).name, Path(path).suffix.lower()
    if suffix == ".safetensors":
        found: Any = read_tensors(path, limit_bytes=limit_bytes)
    elif suffix in _TORCH:
        found = _read_torch(read_bytes(path, limit_bytes=limit_bytes), name, limit_bytes)
    else:
        raise ModelError(f"{name}: weights come as .safetensors, .pth or .pt files.")
    return weights_in(found, name)


def weights_in(found: Any, name: str) -> dict[str, Tensor]:
    """The named tensors of what a program saved, without the prefixes of wrappers.

    Args:
        found: a dictionary of tensors, or one that holds it under ``state_dict`` or ``model``.
        name: what errors call it.
    """
    return _without_prefix(_tensors(found, name))


def _read_torch(content: bytes, name: str, limit_bytes: int) -> Any:
    """The one place where a file of torch is read: tensors and plain containers, or a refusal."""
    if content[:4] == b"PK\x03\x04":
        _check_archive(content, name, limit_bytes)
    elif content[:2] != b"\x80\x02":  # the legacy format begins with a pickled number
        raise ModelError(
            f"{name}: not a file of weights as torch.save writes it (neither its zip nor its "
            "older format)."
        )
    try:
        return torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except Exception as error:  # whatever a hostile file makes the reader trip over
        raise ModelError(f"{name}: {_refusal(str(error))}") from None


def _check_archive(content: bytes, name: str, limit_bytes: int) -> None:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
    except Exception:  # a damaged directory trips zipfile in many ways
        raise ModelError(f"{name}: a damaged or truncated file of weights.") from None
    if size > limit_bytes:
        raise ModelError(f"{name}: it unpacks to {size} bytes, at most {limit_bytes} are read.")


def _refusal(text: str) -> str:
    """Torch's explanation is a page long; its one word that helps is the forbidden name."""
    culprit = re.search(r"GLOBAL ([\w.]+)", text)
    if culprit or "weights_only" in text.lower() or "unsupported" in text.lower():
        named = f" ({culprit.group(1)[:80]})" if culprit else ""
        return (
            f"it holds Python objects{named} beside tensors, which could run code; refused, "
            "nothing was run. Save network.state_dict() alone, best as .safetensors."
        )
    return f"a damaged or truncated file of weights ({shorten(' '.join(text.split()))})."


def _tensors(found: Any, name: str) -> dict[str, Tensor]:
    """The state_dict in what was read."""
    found = _innermost(found, name)
    if not isinstance(found, Mapping) or not found:
        kind = "nothing" if isinstance(found, Mapping) else f"a {type(found).__name__}"
        raise ModelError(f"{name}: it holds {kind}, expected tensors by name (a state_dict).")
    for key, value in found.items():
        if not isinstance(key, str) or not isinstance(value, Tensor) or value.is_nested:
            raise ModelError(
                f"{name}: it holds a {type(value).__name__} under {shorten(str(key))}, "
                "expected tensors by name (a state_dict)."
            )
    return dict(found)


def _innermost(found: Any, name: str) -> Any:
    """What lies in the containers that training programs put around the weights."""
    for _ in range(_DEPTH):
        inner = [found[k] for k in _NESTED if k in found] if isinstance(found, Mapping) else []
        nested = next((value for value in inner if isinstance(value, Mapping)), None)
        if nested is None:
            return found
        found = nested
    raise ModelError(f"{name}: its weights lie more than {_DEPTH} containers deep.")


def _without_prefix(found: dict[str, Tensor]) -> dict[str, Tensor]:
    for _ in range(_DEPTH):
        common = next((p for p in _PREFIXES if all(key.startswith(p) for key in found)), None)
        if common is None:
            break
        found = {key[len(common) :]: value for key, value in found.items()}
    return found
