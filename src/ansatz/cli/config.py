"""A fit as data: what ``--config`` reads and ``--print-config`` writes."""

import difflib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from ansatz.errors import UsageError

_OWN_TARGET = ("", ".npz", ".npy", ".nii", ".gz")  # endings of what may be images
_LARGEST = 1 << 20  # bytes; a configuration is written by hand

Name = Annotated[str, Field(min_length=1)]
Colour = Annotated[str, Field(pattern="^#[0-9a-fA-F]{6}$")]


class FitConfig(BaseModel):
    """Everything that ``ansatz fit`` can be told. A key that is not here is an error.

    Example:
        >>> from ansatz.cli.config import FitConfig
        >>> FitConfig(data="houses.csv", target=["price"]).seed
        0
    """

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    data: Name
    target: list[Name] = []
    event: Name | None = None
    entry: Name | None = None
    lower: Name | None = None
    upper: Name | None = None
    trials: Name | None = None
    x: str | None = None
    likelihood: str | None = None
    network: str | None = None
    inference: str = "point"
    out: str | None = None
    overwrite: bool = False
    resume: bool = False
    force: bool = False
    device: str = "auto"
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    test: Annotated[float, Field(ge=0, lt=1)] | None = None
    folds: Annotated[int, Field(ge=2, le=1000)] | None = None
    group: str | None = None
    time: str | None = None
    weights: str | None = None
    offset: str | None = None
    exposure: str | None = None
    drop: list[Name] = []
    roles: dict[str, str] = {}
    time_limit: Annotated[float, Field(gt=0)] | None = None
    progress: Literal["auto", "off"] = "auto"
    tensorboard: str | None = None
    processes: Annotated[int, Field(ge=1, le=1024)] = 1
    stream: bool | None = None
    memory_limit: Name | None = None
    delimiter: str | None = None
    header: bool = True
    names: list[Name] | None = None
    comment: str | None = None
    missing: list[str] = []
    decimal: str = "."
    encoding: str | None = None
    image: Name | None = None
    masks: Name | None = None
    pages: Literal["auto", "first", "images", "volume"] = "auto"
    pieces: Annotated[int, Field(ge=2)] | None = None
    size: list[Annotated[int, Field(ge=1)]] | None = None
    channels: int | Name = "auto"
    unlabelled: int | Colour | None = None
    on_corrupt: Literal["refuse", "skip"] = "refuse"
    options: dict[str, Any] = {}

    @field_validator("target", "drop", "names", mode="before")
    @classmethod
    def _one_is_a_list(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value


def read_config(path: Path) -> dict[str, Any]:
    """The mapping in a TOML or JSON file; it can hold data only, and names no Python object.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from ansatz.cli.config import read_config
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder) / "fit.toml"
        ...     _ = file.write_text('target = ["price"]')
        ...     read_config(file)
        {'target': ['price']}
    """
    import tomllib

    try:
        if path.stat().st_size > _LARGEST:
            raise UsageError(f"--config {path}: larger than 1 MB; this is no configuration.")
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise UsageError(f"--config {path}: expected UTF-8 text.") from None
    except OSError as error:
        raise UsageError(f"--config {path}: {error.strerror}.") from None
    try:
        is_json = path.suffix.lower() == ".json"
        content = json.loads(text, object_pairs_hook=_once) if is_json else tomllib.loads(text)
    except RecursionError:
        raise UsageError(f"--config {path}: nested too deeply.") from None
    except ValueError as error:  # both parsers' errors are ValueErrors that say the line
        raise UsageError(f"--config {path}: {error}") from None
    if not isinstance(content, dict):
        raise UsageError(f"--config {path}: expected a table of keys and values.")
    return content


def make_config(given: Mapping[str, Any], source: str) -> FitConfig:
    """Checks the keys and values of a fit; the first that is wrong is named.

    Example:
        >>> from ansatz.cli.config import make_config
        >>> make_config({"data": "a.csv", "target": ["y"], "likelyhood": "gamma"}, "fit.toml")
        Traceback (most recent call last):
        ...
        ansatz.errors.UsageError: fit.toml: unknown key 'likelyhood'. Did you mean 'likelihood'?
    """
    try:
        config = FitConfig.model_validate(dict(given))
    except ValidationError as error:
        first = error.errors()[0]
    else:
        says_target = config.target or config.lower is not None or config.masks is not None
        if not says_target and not has_own_target(config.data):
            raise UsageError(f"{source}: --target COLUMN is missing.")
        return config
    key = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        near = difflib.get_close_matches(key, FitConfig.model_fields, n=1)
        hint = (
            f"Did you mean '{near[0]}'?" if near else f"Keys: {', '.join(FitConfig.model_fields)}."
        )
        raise UsageError(f"{source}: unknown key '{key[:80]}'. {hint}")
    if first["type"] == "missing":
        what = {"data": "DATA"}.get(key, key)
        raise UsageError(f"{source}: {what} is missing.")
    message = first["msg"][:1].lower() + first["msg"][1:]
    raise UsageError(f"{source}: {key}: {message}, got {str(first['input'])[:80]!r}.")


def has_own_target(data: str) -> bool:
    """Whether data may know their own target, as folders of images and image sets do.

    Example:
        >>> from ansatz.cli.config import has_own_target
        >>> has_own_target("flowers/"), has_own_target("houses.csv")
        (True, False)
    """
    return Path(data).suffix.lower() in _OWN_TARGET


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key '{twice}' appears twice")
    return found
