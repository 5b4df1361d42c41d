"""Measures how many training images should be augmented, on folds of the training images.

And whether predicted masks should be averaged over rotations and flips.

    python benchmarks/variations.py            # all: half an hour on one core
    python benchmarks/variations.py mnist      # or isbi2012

MNIST: LeNet-5 on three folds of 10,000 training images, trained on the other 50,000. ISBI 2012: a
U-Net is trained on slices 0 to 19 and evaluated on 20 to 23. Test images are not used. The
augmentation is the default one; what differs is how often. Writes results/variations.json.
"""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ansatz import Classifier, Segmenter
from ansatz.bench.record import RESULTS, write_record
from ansatz.data import load
from ansatz.data.augmentation import Affine, Crop, Elastic, Flip, RandomApply, Rotate90
from ansatz.storage import read_json

RECORD = RESULTS / "variations.json"
FOLD, FOLDS = 10_000, 3
STEPS = 360  # half of what a fit would take


def digits(share: float) -> dict[str, Any]:
    """Error and nll of LeNet-5 on each fold, when this share of the images is moved."""
    data = load("mnist")
    grids, y = data.grids, data.frame[data.target].to_numpy()
    train, _ = data.split()
    move = Affine(10.0, scale=0.1, each_axis=True, shift=2.0, padding="border")
    errors, nlls = [], []
    for fold in range(FOLDS):
        evaluate = train[fold * FOLD : (fold + 1) * FOLD]
        learn = np.setdiff1d(train, evaluate)
        model = Classifier(network="lenet5", random_state=fold, augment=RandomApply(share, move))
        model.fit(grids[learn], y[learn])
        found = model.evaluate(grids[evaluate], y[evaluate])
        errors.append(1 - found["accuracy"])
        nlls.append(found["nll"])
    return {"error": np.mean(errors).item(), "errors": errors, "nll": np.mean(nlls).item()}


def membranes(share: float, holdout: float = 0.1, symmetry: str = "none") -> dict[str, Any]:
    """Dice, pixel error and nll of a U-Net after 360 steps, when this share is deformed."""
    data = load("isbi2012")
    learn, evaluate = np.arange(20), np.arange(20, 24)
    bend = Elastic(256 / 50, degrees=10.0, scale=0.1)
    augment = [Crop((256, 256)), Flip((-1, -2)), Rotate90(), RandomApply(share, bend)]
    epochs = STEPS * 2 / (len(learn) * (1 - holdout))
    settings = {"epochs": epochs, "holdout": holdout, "augment": augment, "symmetry": symmetry}
    model = Segmenter(**settings, random_state=0)
    model.fit(data.grids[learn], data.masks[learn])
    return dict(model.evaluate(data.grids[evaluate], data.masks[evaluate]))


CASES: dict[str, dict[str, Callable[[], dict[str, Any]]]] = {
    "mnist": {
        "all": lambda: digits(1.0),
        "half": lambda: digits(0.5),
    },
    "isbi2012": {
        "all": lambda: membranes(1.0),
        "half": lambda: membranes(0.5),
        "one in five": lambda: membranes(0.2),
        "none": lambda: membranes(0.0),
        "one in five, none held out": lambda: membranes(0.2, holdout=0.0),
        "the same, every way round": lambda: membranes(0.2, holdout=0.0, symmetry="dihedral"),
    },
}


def main() -> None:
    """Prints and writes the record; what was not asked for stays in it."""
    kept = read_json(RECORD)["results"] if RECORD.exists() else {}
    for name in sys.argv[1:] or CASES:
        kept[name] = {}
        for case, run in CASES[name].items():
            began = time.perf_counter()
            kept[name][case] = {**run(), "seconds": round(time.perf_counter() - began, 1)}
            print(name, case, json.dumps(kept[name][case]), flush=True)
    write_record("variations", command="python benchmarks/variations.py", seed=0, results=kept)


if __name__ == "__main__":
    main()
