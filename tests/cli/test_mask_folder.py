import numpy as np
import pytest
from numpy.testing import assert_array_equal
from PIL import Image

from ansatz.cli.mask_folder import file_names, restored
from ansatz.data.grids.fitting import fitted


@pytest.mark.parametrize(
    "names, files",
    [
        (["../mix/0.png", "../mix/1.png"], ["mix-0.png", "mix-1.png"]),
        (["../a.png", "a.png"], ["0-a.png.png", "1-a.png.png"]),
        (["./.a.png", "b.png"], ["a.png", "b.png"]),
        (["/data/x/1.tif", "/data/y/1.tif"], ["data-x-1.png", "data-y-1.png"]),
        (["..", "..."], ["0-mask.png", "1-mask.png"]),
    ],
)
def test_no_mask_is_hidden_and_no_two_are_called_alike(names, files):
    assert file_names(names) == files


@pytest.mark.parametrize("size", [(16, 16), (8, 24), (30, 7)])
def test_a_mask_is_brought_back_to_where_its_image_was(size):
    """A half plane: scaled up twofold at least, it comes back to the cell."""
    half = np.zeros(size, np.uint8)
    half[: size[0] // 2] = 1
    large = fitted(Image.fromarray(half), (64, 64), nearest=True)
    assert_array_equal(restored(large, size), half)
