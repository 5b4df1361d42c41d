"""The outcome of translations and captions: a text."""
