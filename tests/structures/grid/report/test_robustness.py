import numpy as np

from ansatz import Segmenter
from ansatz.report import gather
from ansatz.structures.grid.report.robustness import certificates


def test_masks_of_volumes_are_certified_in_their_middle():
    x = np.random.default_rng(0).normal(size=(3, 40, 34, 36)).astype(np.float32)
    volumes = x[:, None]  # of one channel
    model = Segmenter(network="linear_pixels", epochs=1, augment=False).fit(volumes, x > 0)
    found, notes = certificates(gather(model, volumes, x > 0))
    assert [each.group for each in found] == ["shift", "cyclic_shift", "flip"]
    assert "cropped to the central 32 × 32 × 32" in notes[0]
