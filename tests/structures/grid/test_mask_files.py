import numpy as np
import pytest
from numpy.testing import assert_array_equal
from PIL import Image

from ansatz.data.grids.images import inner_box
from ansatz.structures.grid.mask_files import file_stems, restored


@pytest.mark.parametrize(
    "names, stems",
    [
        (["../mix/0.png", "../mix/1.png"], ["mix-0", "mix-1"]),
        (["../a.png", "a.png"], ["0-a.png", "1-a.png"]),
        (["./.a.png", "b.png"], ["a", "b"]),
        (["/data/x/1.tif", "/data/y/1.tif"], ["data-x-1", "data-y-1"]),
        (["..", "..."], ["0-mask", "1-mask"]),
    ],
)
def test_no_mask_is_hidden_and_no_two_are_called_alike(names, stems):
    assert file_stems(names) == stems


@pytest.mark.parametrize("size", [(16, 16), (8, 24), (30, 7)])
def test_a_mask_is_brought_back_to_where_its_image_was(size):
    """A half plane: scaled up twofold at least, it comes back to the pixel."""
    half = np.zeros(size, np.uint8)
    half[: size[0] // 2] = 1
    top, left, height, width = inner_box(size, (64, 64))
    large = np.zeros((64, 64), np.uint8)
    inner = Image.fromarray(half).resize((width, height), Image.Resampling.NEAREST)
    large[top : top + height, left : left + width] = inner
    assert_array_equal(restored(large, size), half)
