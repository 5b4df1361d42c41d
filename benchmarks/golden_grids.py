"""The golden cases of images, signals, volumes and masks."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import golden_data as data
import numpy as np
import pandas as pd
import torch
from golden_record import Record, of_array, of_command, of_model, with_evaluation
from safetensors.torch import save_file

from ansatz import Classifier, Regressor, Segmenter, SurvivalRegressor, networks
from ansatz.spec import InputSpec

CASES: dict[str, Callable[[Path], Record]] = {}
SMALL = ("--set", "depth=8", "--set", "width=4", "--set", "epochs=1")
RESNET = {"depth": 8, "width": 4}
TINY = {"depth": 1, "width": 4}


def case(function: Callable[[Path], Record]) -> Callable[[Path], Record]:
    """Adds a function to the cases by its name."""
    CASES[function.__name__] = function
    return function


def folder_of_classes(folder: Path, count: int) -> Path:
    """Images in folders of their classes."""
    names = [f"{kind}/{k:03d}.png" for k, kind in enumerate(data.kinds(count))]
    data.write_images(folder / "discs", data.discs(count)[0], names)
    return folder / "discs"


def other_weights(folder: Path) -> Path:
    """The file of a network with other outputs."""
    generator, path = torch.Generator().manual_seed(0), folder / "other.safetensors"
    grid = InputSpec.grid(1, 12, 12)
    made = networks.create("small_resnet", grid, 7, generator=generator, **RESNET)
    save_file(made.state_dict(), path)
    return path


@case
def images_in_folders(folder: Path) -> Record:
    """A small residual network on images of two classes, by command."""
    path = folder_of_classes(folder, 130)
    return with_evaluation(of_command(folder, path, *SMALL, predict=[path]), folder, path)


@case
def images_from_disk(folder: Path) -> Record:
    """Images that stay in their files, decoded ahead of the training."""
    path = folder_of_classes(folder, 60)
    return of_command(folder, path, *SMALL, "--stream", predict=[path])


@case
def images_few_by_ridge(folder: Path) -> Record:
    """Fewer than 50 examples: the linear model beside is penalised."""
    path = folder_of_classes(folder, 40)
    return of_command(folder, path, "--network", "lenet5", "--set", "epochs=1", predict=[path])


@case
def image_ensemble(folder: Path) -> Record:
    """Members that each hold out a fold of images."""
    images, y = data.discs(50)[0], data.kinds(50)
    model = Classifier(
        network="small_resnet",
        network_options=RESNET,
        **{"inference": "ensemble", "members": 2, "epochs": 1},
    )
    return of_model(model.fit(images[:40], y[:40]), folder, images[40:], y[40:])


@case
def image_counts_with_exposure(folder: Path) -> Record:
    """A table of paths with counts and how long they were counted, by command."""
    images, _, radii = data.discs(60)
    rng = np.random.default_rng(7)
    names = [f"images/{k:03d}.png" for k in range(60)]
    data.write_images(folder, images, names)
    hours = rng.uniform(0.5, 2, 60).round(2)
    table = pd.DataFrame({"file": names, "spots": rng.poisson(hours * radii), "hours": hours})
    path = data.write_csv(folder, table)
    fit = [path, "--target", "spots", "--likelihood", "poisson", "--exposure", "hours"]
    return of_command(folder, *fit, *SMALL, predict=[path, "--interval", "0.9"])


@case
def linear_grid(folder: Path) -> Record:
    """The linear model in the pixels, of numbers."""
    images, _, radii = data.discs(60)
    model = Regressor("normal", network="linear_grid", epochs=3).fit(images[:45], radii[:45])
    return of_model(model, folder, images[45:], radii[45:], interval=0.9)


@case
def mlp_on_images(folder: Path) -> Record:
    """The network of tables on the pixels; no augmentation."""
    images, y = data.discs(60)[0], data.kinds(60)
    model = Classifier(network="mlp", widths=[8], augment=False, epochs=2)
    return of_model(model.fit(images[:45], y[:45]), folder, images[45:], y[45:])


@case
def pretrained_and_frozen(folder: Path) -> Record:
    """A network that begins with the weights of another, the last layer alone trained."""
    images, y = data.discs(50)[0], data.kinds(50)
    model = Classifier(
        network="small_resnet",
        network_options=RESNET,
        **{"pretrained": other_weights(folder), "freeze": "backbone", "epochs": 2},
    )
    return of_model(model.fit(images[:40], y[:40]), folder, images[40:], y[40:])


@case
def pretrained_by_command(folder: Path) -> Record:
    """The same by command, with an option of its own for each."""
    path = folder_of_classes(folder, 50)
    weights = other_weights(folder)
    begin = ["--set", f"pretrained={weights}", "--freeze", "1"]
    return of_command(folder, path, "--network", "small_resnet", *SMALL, *begin, predict=[path])


@case
def image_times(folder: Path) -> Record:
    """A likelihood that couples examples on images: Cox's partial likelihood."""
    images, _, radii = data.discs(60)
    outcomes = np.stack([(10 / radii).round(2) + np.arange(60) % 7, np.arange(60) % 3 > 0], 1)
    model = SurvivalRegressor("cox", network="lenet5", epochs=2).fit(images[:45], outcomes[:45])
    return of_model(model, folder, images[45:], outcomes[45:], times=[5])


@case
def signals(folder: Path) -> Record:
    """The rows of a table as signals, by command."""
    waves, y = data.signals(60)
    path = data.write_csv(folder, pd.DataFrame(waves).add_prefix("t").assign(rhythm=y))
    return of_command(folder, path, "--x", "grid", "--target", "rhythm", *SMALL, predict=[path])


@case
def masks(folder: Path) -> Record:
    """A U-Net, its answers averaged over rotations and flips."""
    return of_masks(folder, Segmenter(network_options=TINY, epochs=1))


@case
def mask_ensemble(folder: Path) -> Record:
    """Probabilities mixed pixel by pixel, with one temperature."""
    ensemble = {"inference": "ensemble", "members": 2}
    return of_masks(folder, Segmenter(network_options=TINY, epochs=1, **ensemble))


@case
def linear_masks_by_dice(folder: Path) -> Record:
    """One convolution and a loss of masks as a whole."""
    return of_masks(folder, Segmenter("dice", network="linear_pixels", epochs=3, symmetry="none"))


@case
def masks_in_folders(folder: Path) -> Record:
    """Folders of images and masks with pixels that have no label, by command."""
    images, labels, _ = data.discs(30)
    labels = labels.copy()
    labels[:, :2] = 255
    names = [f"{k:03d}.png" for k in range(30)]
    data.write_images(folder / "cells" / "images", images, names)
    data.write_images(folder / "cells" / "masks", labels, names)
    small = ["--set", "depth=1", "--set", "width=4", "--set", "epochs=1"]
    path = folder / "cells"
    fit = [path, "--unlabelled", "255", *small]
    found = of_command(folder, *fit, predict=[path / "images"])
    return with_evaluation(found, folder, path)


@case
def masks_of_volumes(folder: Path) -> Record:
    """A class for every voxel."""
    images, labels, _ = data.discs(64, size=8)
    volumes, y = images.reshape(8, 1, 8, 8, 8), labels.reshape(8, 8, 8, 8)
    model = Segmenter(network="unet3d", network_options=TINY, epochs=1).fit(volumes[:6], y[:6])
    found = of_model(model, folder, volumes[6:], y[6:])
    found["numbers"] |= of_array("probability", model.predict_proba(volumes[6:])[..., 1])
    return found


def of_masks(folder: Path, model: Any) -> Record:
    """The record of a segmenter of discs, with probabilities."""
    images, labels, _ = data.discs(30)
    model.fit(images[:24], labels[:24])
    found = of_model(model, folder, images[24:], labels[24:])
    found["numbers"] |= of_array("probability", model.predict_proba(images[24:])[..., 1])
    if model.inference == "ensemble":
        found["numbers"] |= of_array("disagreement", model.between_entropy(images[24:]))
    return found
