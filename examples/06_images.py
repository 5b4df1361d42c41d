"""Images: recognise handwritten digits, and see which ones the network is unsure about.

Data: 1,797 digits, 8 x 8 grey pixels each (shipped with scikit-learn).
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import confusion_matrix

from ansatz import Classifier

digits = load_digits()
images, labels = digits.images.astype(np.float32), digits.target  # (1797, 8, 8)
train, test = slice(0, 1300), slice(1300, None)

# Arrays of three axes are images (x="grid" would say so of arrays of two axes, which are signals).
# The network may be any of `ansatz list networks`; options after it are its own.
model = Classifier(network="small_resnet", network_options={"depth": 8, "width": 8}, epochs=8)
model.fit(images[train], labels[train])
linear = Classifier(network="linear_grid", epochs=8).fit(images[train], labels[train])

for name, each in (("small_resnet", model), ("linear", linear)):
    scores = each.evaluate(images[test], labels[test])
    print(f"{name:>12}: accuracy {scores['accuracy']:.3f}, nll {scores['nll']:.3f}")

# Which digits are taken for which? The largest entry off the diagonal.
predicted = model.predict(images[test])
confusion = confusion_matrix(labels[test], predicted)
np.fill_diagonal(confusion, 0)
true, taken = np.unravel_index(confusion.argmax(), confusion.shape)
print(f"most frequent mistake: a {true} taken for a {taken}, {confusion.max()} times")

# High probabilities are right more often than low ones, so you know which answers to check by hand.
sure = model.predict_proba(images[test]).max(axis=1) > 0.95
right = predicted == labels[test]
print(f"sure of {sure.mean():.0%} of the images, right in {right[sure].mean():.1%} of these")
print(f"right in {right[~sure].mean():.1%} of the others")
