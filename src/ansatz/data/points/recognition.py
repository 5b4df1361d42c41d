"""Recognizes point clouds by a cheap look that loads no reader."""

from os import PathLike
from pathlib import Path
from typing import Any

from ansatz.data.points.clouds import Clouds
from ansatz.data.points.files import ENDINGS, OWN
from ansatz.data.sets.sets import Elements


def are_clouds(X: Any) -> bool:
    """Tests whether X is a container of clouds or their points."""
    return isinstance(X.sets if isinstance(X, Elements) else X, Clouds)


def is_points(data: Any) -> bool:
    """Tests whether data are clouds, the name of some, or a folder of meshes and xyz files."""
    if not isinstance(data, str | PathLike):
        return are_clouds(data)
    path = Path(data)
    if not path.is_dir():
        return str(data) == "solids" and not path.exists()
    return next((f for f in files_of(path) if f.suffix.lower() in OWN), None) is not None


def files_of(folder: Path) -> list[Path]:
    """The files of point clouds in the folders of classes, or in the folder itself."""
    found = sorted(f for f in folder.glob("*/*") if f.suffix.lower() in ENDINGS)
    return found or sorted(f for f in folder.glob("*") if f.suffix.lower() in ENDINGS)
