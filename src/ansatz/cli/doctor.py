"""ansatz doctor: is everything here that a fit needs, and does a fit work?"""

import importlib
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from ansatz import __version__
from ansatz.cli.output import print_document, print_line, print_table

_CORE = ("torch", "numpy", "scipy", "pandas", "scikit-learn", "safetensors", "pydantic")
_EXTRAS = {  # distribution -> (module, extra, what for)
    "pyarrow": ("pyarrow", "data", "Parquet and Arrow files"),
    "arviz": ("arviz", "bayes", "posteriors for ArviZ"),
    "ase": ("ase", "chem", "atoms and calculators of ASE"),
    "rdkit": ("rdkit", "chem", "molecules from SMILES"),
    "trimesh": ("trimesh", "points", "meshes as point clouds"),
    "onnx": ("onnx", "onnx", "ansatz export"),
    "onnxruntime": ("onnxruntime", "onnx", "ansatz export"),
    "onnxscript": ("onnxscript", "onnx", "ansatz export"),
    "openpyxl": ("openpyxl", "tables", "Excel files"),
    "xlrd": ("xlrd", "tables", "old Excel files"),
    "pyreadr": ("pyreadr", "tables", "R files"),
    "pyreadstat": ("pyreadstat", "tables", "Stata, SPSS and SAS files"),
    "sacrebleu": ("sacrebleu", "text", "scores of translations"),
    "statsmodels": ("statsmodels", "forecast", "ETS and ARIMA beside forecasts"),
    "tokenizers": ("tokenizers", "text", "tokens of texts"),
    "tensorboard": ("tensorboard", "tb", "TensorBoard logs"),
    "optuna": ("optuna", "tune", "ansatz tune"),
    "pillow": ("PIL", "vision", "image files"),
}
_NEEDED = 200 << 20  # bytes free, for a model and its checkpoints


def _version(name: str) -> str:
    from importlib import metadata  # 15 ms that `ansatz --help` need not wait for

    return metadata.version(name)


class Check(NamedTuple):
    """One line of the doctor's report."""

    name: str
    state: str  # "ok", "absent" (optional, and not there) or "failed"
    detail: str  # what was found, and what to do about it


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Check versions, devices, folders and optional packages, and fit a tiny model.

    Exit status 1 when a check fails.

    Example:
        ansatz doctor
        ansatz doctor --json
    """
    checks = list(_examine())
    failed = [check.name for check in checks if check.state == "failed"]
    if as_json:
        document = {"healthy": not failed, "checks": [check._asdict() for check in checks]}
        print_document(document)
    else:
        print_table(["check", "state", "found"], checks, limit=160)
        print_line()
        print_line(f"failed: {', '.join(failed)}" if failed else "All is well.")
    if failed:
        raise typer.Exit(1)


def _examine() -> Iterator[Check]:
    yield Check("python", "ok", f"{platform.python_version()} on {platform.platform(terse=True)}")
    yield Check("ansatz", "ok", __version__)
    for name in _CORE:
        yield _attempt(name, partial(_version, name))
    yield _attempt("threads", _threads)
    yield _attempt("devices", _devices)
    yield _attempt("bfloat16", _bfloat16)
    for name, (module, extra, purpose) in _EXTRAS.items():
        yield _extra(name, module, extra, purpose)
    yield _attempt("data", _data_folder)
    yield _attempt("disk", _disk)
    yield _attempt("fit", _tiny_fit)


def _attempt(name: str, examine: Callable[[], str]) -> Check:
    try:
        return Check(name, "ok", examine())
    except Exception as error:  # whatever is broken, the doctor reports it and goes on
        return Check(name, "failed", f"{type(error).__name__}: {error}")


def _extra(name: str, module: str, extra: str, purpose: str) -> Check:
    advice = f"for {purpose}: pip install 'ansatz-learn[{extra}]'"
    try:
        importlib.import_module(module)
        return Check(name, "ok", _version(name))
    except ImportError:
        return Check(name, "absent", advice)
    except Exception as error:  # installed and broken: it may raise anything at import
        return Check(name, "absent", f"broken ({type(error).__name__}: {error}); {advice}")


def _threads() -> str:
    import torch

    return f"{torch.get_num_threads()} of {os.cpu_count()} cores"


def _devices() -> str:
    import torch

    found = ["cpu"]
    if torch.cuda.is_available():
        found += [f"cuda:{i} {torch.cuda.get_device_name(i)}" for i in range(_gpus())]
    if torch.backends.mps.is_available():
        found.append("mps")
    return ", ".join(found)


def _gpus() -> int:
    import torch

    return torch.cuda.device_count()


def _bfloat16() -> str:
    import torch

    if torch.cuda.is_available():
        return "cuda: yes" if torch.cuda.is_bf16_supported() else "cuda: no"
    capabilities = getattr(torch.cpu, "_is_avx512_bf16_supported", None)
    fast = bool(capabilities()) if capabilities is not None else False
    return "cpu: in hardware" if fast else "cpu: emulated and slow; float32 is used"


def _data_folder() -> str:
    folder = os.environ.get("ANSATZ_DATA")
    if not folder:
        return "ANSATZ_DATA is not set; data sets are downloaded to the user's cache"
    if not Path(folder).is_dir():
        raise FileNotFoundError(f"ANSATZ_DATA={folder} is not a folder; correct it or unset it")
    return f"ANSATZ_DATA={folder}"


def _disk() -> str:
    places = {"here": Path.cwd(), "temporary": Path(tempfile.gettempdir())}
    free = {name: shutil.disk_usage(path).free for name, path in places.items()}
    text = ", ".join(f"{bytes_ / 1e9:.1f} GB free {name}" for name, bytes_ in free.items())
    if min(free.values()) < _NEEDED:
        raise OSError(f"{text}; a fit needs some 200 MB")
    return text


def _tiny_fit() -> str:
    """y = 2 x is learned, saved, loaded, and predicts what it predicted before."""
    import numpy as np

    import ansatz

    x = np.linspace(-1, 1, 64)[:, None]
    model = ansatz.Regressor(network="linear").fit(x, 2 * x[:, 0])
    worst = float(np.abs(model.predict(x) - 2 * x[:, 0]).max())
    if not worst < 0.05:
        raise ArithmeticError(f"a line was missed by {worst:.3g}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        model.save(path)
        again = ansatz.load(path).predict(x)
    if not np.array_equal(again, model.predict(x)):
        raise ArithmeticError("a saved model predicts something else")
    return f"a line fitted, saved and loaded (torch on {sys.platform})"
