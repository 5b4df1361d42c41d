"""What a golden case keeps of a fit: a hash of its weights, and its numbers by name."""

import contextlib
import hashlib
import io
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from safetensors.numpy import load_file

import ansatz
from ansatz.cli.main import run

Record = dict[str, Any]
SHOWN = 5  # entries of each prediction, beside the mean of all


def of_fit(fit: Any, new: Any = None, **options: Any) -> Record:
    """The scores of a saved fit, and what its model predicts of ``new`` once it is loaded.

    Args:
        fit: what ``ansatz.fit`` gave, with ``out``.
        new: rows to predict; None for none.
        options: of ``predict_frame``.
    """
    numbers = scores(fit.to_dict())
    if new is not None:
        numbers |= of_frame(ansatz.load(fit.folder).predict_frame(new, **options))
    recipe = fit.recipe.get("recipe", "")
    return record(fit.folder, numbers, fit.likelihood, recipe, fit.rows)


def of_model(
    model: Any, folder: Path, X: Any, y: Any = None, network: Any = None, **options: Any
) -> Record:
    """The metrics and predictions of an estimator, saved and loaded again.

    Args:
        model: fitted.
        folder: to save it in.
        X: rows to predict.
        y: their outcomes, for ``evaluate``; None leaves it out.
        network: a module of the user's, to load the weights into.
        options: of ``predict_frame``.
    """
    described = model.describe()
    saved = model.save(folder / "model")
    loaded = ansatz.load(saved) if network is None else ansatz.load(saved, network=network)
    numbers = of_frame(loaded.predict_frame(X, **options))
    if y is not None:
        numbers |= plain("metrics", loaded.evaluate(X, y))
    rows = {"rows": 0 if X is None else len(X)}
    return record(saved, numbers, described["likelihood"], described["recipe"] or "", rows)


def of_command(folder: Path, *words: Any, predict: Sequence[Any] = ()) -> Record:
    """``ansatz fit WORDS --out``, then ``ansatz predict`` with the words given for it.

    Args:
        folder: for the model and its predictions.
        words: of ``ansatz fit``.
        predict: of ``ansatz predict`` behind the model: DATA and options; none leaves it out.
    """
    model = folder / "model"
    document = json.loads(command("fit", *words, "--out", model, "--json", "--quiet"))
    numbers = scores(document)
    if predict:
        command("predict", model, *predict, "--out", folder / "predictions.csv")
        frame = pd.read_csv(folder / "predictions.csv", float_precision="round_trip")
        numbers |= of_frame(frame.drop(columns=[c for c in ("row", "image") if c in frame]))
    recipe = json.loads(command("inspect", model, "--json"))["recipe"] or ""
    return record(model, numbers, document["likelihood"], recipe, document["rows"])


def with_evaluation(found: Record, folder: Path, *words: Any) -> Record:
    """The record with the numbers of ``ansatz evaluate`` on DATA with options."""
    document = json.loads(command("evaluate", folder / "model", *words, "--json"))
    found["numbers"] |= plain("evaluate", document)
    return found


def command(*words: Any) -> str:
    """Standard output of one command that succeeds."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = run([str(word) for word in words])
    if status:
        raise RuntimeError(f"ansatz {' '.join(map(str, words))}: status {status}\n{err.getvalue()}")
    return out.getvalue()


def record(
    folder: Path, numbers: Mapping[str, Any], likelihood: str, recipe: str, rows: Mapping[str, int]
) -> Record:
    """One case of the document."""
    return {
        "likelihood": likelihood,
        "rows": dict(rows),
        "recipe": recipe,
        "weights": weights_hash(folder),
        "numbers": dict(numbers),
    }


def weights_hash(folder: Path) -> str:
    """SHA-256 of the bytes of all saved tensors, in an order that knows no names."""
    tensors = load_file(Path(folder) / "weights.safetensors").values()
    hashed = hashlib.sha256()
    for content in sorted(tensor.tobytes() for tensor in tensors):
        hashed.update(len(content).to_bytes(8, "little") + content)
    return hashed.hexdigest()


def scores(document: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers of ``fit --json``: of the model, and of the linear and constant ones beside."""
    numbers: dict[str, Any] = {}
    for name in ("metrics", "linear", "constant"):
        numbers |= plain(name, document[name] or {})
    for name in ("parameters", "epochs", "log_likelihood"):
        if document.get(name) is not None:
            numbers[name] = number(document[name])
    for found in document.get("candidates") or ():
        likelihood = found.get("likelihood") or found.get("law")  # before 0.2
        numbers |= plain(f"candidate {likelihood}", found)
    return numbers


def plain(prefix: str, found: Mapping[str, Any]) -> dict[str, Any]:
    """Those entries that are numbers, or None for an undefined one."""
    kinds = (int, float, np.number, type(None))
    return {
        f"{prefix}.{name}": number(value)
        for name, value in found.items()
        if isinstance(value, kinds) and not isinstance(value, bool) and "seconds" not in name
    }


def nested(prefix: str, found: Any) -> dict[str, Any]:
    """The numbers within a document of mappings and lists, each by the way to it."""
    if isinstance(found, Mapping):
        entries = found.items()
    elif isinstance(found, list | tuple):
        entries = enumerate(found)
    else:
        return plain(prefix, {"": found})
    return {
        name.rstrip("."): value
        for key, entry in entries
        for name, value in nested(f"{prefix}.{key}", entry).items()
    }


def of_frame(frame: pd.DataFrame) -> dict[str, Any]:
    """The first entries and the mean of columns of numbers, the counts of other columns."""
    numbers: dict[str, Any] = {}
    for name in frame.columns:
        column = frame[name]
        if name == "risk":  # Cox leaves its level open: rounding alone decides it
            column = column - column.mean()
        if pd.api.types.is_numeric_dtype(column):
            numbers |= of_array(str(name), column.to_numpy(dtype=np.float64))
        else:
            counts = column.astype(str).value_counts().sort_index()
            numbers |= {f"{name}={value}": int(count) for value, count in counts.items()}
    return numbers


def of_array(name: str, values: Any) -> dict[str, Any]:
    """The first entries and the mean of an array."""
    flat = np.asarray(values, dtype=np.float64).ravel()
    first = {f"{name}[{k}]": number(value) for k, value in enumerate(flat[:SHOWN])}
    return {**first, f"mean {name}": number(flat.mean())}


def number(value: Any) -> Any:
    """As JSON can hold it: text where it is not finite."""
    if value is None or isinstance(value, int):
        return value
    return float(value) if math.isfinite(value) else str(float(value))
