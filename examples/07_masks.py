"""Masks: a class for every pixel. Which pixels of a micrograph are membrane?

Data: 30 electron micrographs of nerve tissue with masks (ISBI 2012), at a quarter of their size.
"""

import numpy as np

from ansatz import Segmenter, data

isbi = data.load("isbi2012")
rows = np.arange(0, 30, 2)


def shrink(values, factor=4):
    """The mean over blocks of pixels."""
    n, height, width = values.shape
    return values.reshape(n, height // factor, factor, width // factor, factor).mean((2, 4))


images = shrink(np.asarray(isbi.grids.load(rows), dtype=np.float32)[:, 0])  # (15, 128, 128)
masks = (shrink(np.asarray(isbi.masks.load(rows), dtype=np.float32)) > 0.5).astype(int)
train, test = slice(0, 11), slice(11, None)
print(f"{len(images)} images of {images.shape[1:]}, {masks.mean():.0%} of the pixels in class 1")

# A small U-Net. The loss "sum" adds Dice, which compares whole masks, and a loss of each pixel.
options = {"depth": 2, "width": 8}
model = Segmenter("sum", network_options=options, epochs=12, batch_size=2, learning_rate=2e-2)
model.fit(images[train], masks[train])
linear = Segmenter(network="linear_pixels", epochs=5, random_state=0).fit(
    images[train], masks[train]
)

# Dice is 2 |A and B| / (|A| + |B|) of the predicted and the true mask: 1 is perfect.
for name, each in (("U-Net", model), ("linear", linear)):
    scores = each.evaluate(images[test], masks[test])
    print(f"{name:>6}: Dice {scores['dice']:.3f}, wrong pixels {scores['pixel_error']:.3f}")

# A mask for each image; probabilities have the classes last.
first = model.predict(images[test])[0]
print(
    f"the first mask has shape {first.shape}, {np.mean(first != masks[test][0]):.1%} of it is wrong"
)
