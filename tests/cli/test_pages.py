"""Stacks of pages from the command line: images with masks, volumes, and back to files."""

import json
import os

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from ansatz.cli.main import run
from ansatz.fitting.replay import replay

QUICK = ("--network", "linear", "--quiet", "--set", "augment=false", "--set")


def stack(path, values):
    path.parent.mkdir(parents=True, exist_ok=True)
    first, *others = map(Image.fromarray, values)
    first.save(path, save_all=True, append_images=others)


def pages_of(path):
    found = []
    with Image.open(path) as image:
        for k in range(image.n_frames):
            image.seek(k)
            found.append(np.array(image))
    return np.stack(found)


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """A stack of discs with masks, another one, folders of stacks; models of all of them."""
    folder = tmp_path_factory.mktemp("stacks")
    rng = np.random.default_rng(0)
    i, j = np.mgrid[:12, :12]

    def discs(name, count):
        place = rng.uniform([3, 3, 2], [9, 9, 4], (count, 3))[..., None, None]
        masks = (i - place[:, 0]) ** 2 + (j - place[:, 1]) ** 2 < place[:, 2] ** 2
        stack(folder / f"{name}.tif", (60 + 120 * masks).astype(np.uint8))
        stack(folder / f"{name}-labels.tif", (255 * masks).astype(np.uint8))
        return masks

    discs("cells", 10)
    discs("more", 4)
    for k in range(8):
        level = 60 + 100 * (k % 2)
        values = rng.integers(level, level + 40, (3, 6, 6), np.uint8)
        stack(folder / f"scans/{'ab'[k % 2]}/{k}.tif", values)
        stack(folder / f"parts/images/{k}.tif", values)
        stack(folder / f"parts/masks/{k}.tif", (values > 180).astype(np.uint8))
    here = os.getcwd()
    os.chdir(folder)
    try:
        stacked = ("fit", "cells.tif", "--masks", "cells-labels.tif")
        assert run([*stacked, *QUICK, "epochs=20"]) == 0
        assert run(["fit", "scans", "--pages", "volume", *QUICK, "epochs=3"]) == 0
        assert run(["fit", "parts", "--pages", "volume", *QUICK, "epochs=3"]) == 0
    finally:
        os.chdir(here)
    return folder


def test_a_stack_with_masks_is_fitted_by_page_with_a_note(inside):
    done = inside("fit", "cells.tif", "--masks", "cells-labels.tif", "--dry-run", "--out", "m")
    assert done.status == 0, done.err
    assert "10 examples of 1 x 12 x 12 numbers" in done.out
    assert "the 10 pages of cells.tif and of its masks were read as images" in done.err


def test_masks_of_a_stack_are_a_stack(inside, work, tmp_path):
    words = ("predict", "cells-model", "more.tif", "--out")
    done = inside(*words, tmp_path / "found.tif")
    assert done.status == 0 and "4 masks" in done.out and not done.err, done.err
    truth, found = pages_of(work / "more-labels.tif"), pages_of(tmp_path / "found.tif")
    assert found.shape == truth.shape and (found == truth).mean() > 0.9
    assert inside(*words, tmp_path / "folder").status == 0
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["more.tif"]
    assert (pages_of(tmp_path / "folder/more.tif") == found).all()
    kept = inside(*words, tmp_path / "found.tif")
    assert kept.status == 2 and "--overwrite" in kept.err
    assert inside(*words, tmp_path / "folder", "--overwrite").status == 0
    assert inside(*words, tmp_path / "shares.csv").status == 0
    shares = pd.read_csv(tmp_path / "shares.csv")
    assert shares["image"].tolist() == [f"more.tif page {k}" for k in range(1, 5)]
    assert shares["share_255"].tolist() == [(page == 255).mean() for page in found]


def test_another_stack_is_evaluated_by_masks_that_are_named(inside):
    done = inside("evaluate", "cells-model", "more.tif", "--masks", "more-labels.tif", "--json")
    assert json.loads(done.out)["dice"] > 0.8, done.err
    assert inside("evaluate", "cells-model", "cells.tif").status == 0  # the fit's own masks
    first = inside("predict", "cells-model", "more.tif", "--pages", "first")
    assert len(first.out.splitlines()) == 2


def test_the_rows_of_a_stack_are_found_again(work):
    found = replay(work / "cells-model")
    assert len(found.learn.y) + len(found.test.y) == 10
    assert len(replay(work / "parts-model").job.y) == 8


def test_a_folder_of_stacks_is_one_of_volumes_to_all_commands(inside):
    found = inside("predict", "scans-model", "scans")
    assert len(found.out.splitlines()) == 9
    one = inside("predict", "scans-model", "scans/b/1.tif")
    assert one.out.splitlines()[1].split(",")[1:3] == ["1.tif", "b"]
    assert "accuracy" in inside("evaluate", "scans-model", "scans").out
    short = inside("predict", "scans-model", "more.tif")
    assert short.status == 3 and "fitted to examples of 1 channel of 3 x 6 x 6" in short.err


def test_masks_of_volumes_are_stacks(inside, tmp_path):
    done = inside("predict", "parts-model", "parts/images", "--out", tmp_path / "found")
    assert done.status == 0 and "8 masks" in done.out, done.err
    assert sorted(path.name for path in (tmp_path / "found").iterdir()) == [
        f"{k}.tif" for k in range(8)
    ]
    assert pages_of(tmp_path / "found/3.tif").shape == (3, 6, 6)
    assert json.loads(inside("evaluate", "parts-model", "parts", "--json").out)["nll"] > 0


def test_without_pages_a_folder_of_stacks_names_the_option(inside):
    done = inside("fit", "scans", "--dry-run", "--out", "m")
    assert "8 examples of 1 x 6 x 6" in done.out
    assert "first frame or page; for all: --pages images or volume" in done.err
    odd = inside("fit", "scans", "--pages", "all", "--out", "m")
    assert odd.status == 2 and "pages" in odd.err
    uneven = inside("fit", "cells.tif", "--masks", "more-labels.tif", "--out", "m")
    assert uneven.status == 3 and "cells.tif has 10 pages, its mask more-labels.tif 4" in uneven.err
    image = inside("predict", "scans-model", "scans", "--out", "a.tif")
    assert image.status == 2 and "predictions are CSV" in image.err
