"""What examples are called, by the axes of their cells."""

from ansatz.report.contribution import Unit

SIGNAL = Unit("signal", "signals")
IMAGE = Unit("image", "images")
VOLUME = Unit("volume", "volumes")
UNITS = {1: SIGNAL, 2: IMAGE, 3: VOLUME}
