"""Deep learning as statistics: say what x is, what y is, and how sure you need to be."""

__version__ = "0.1.0"
