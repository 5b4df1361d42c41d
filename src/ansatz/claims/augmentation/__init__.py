"""Claims about transforms of the training data."""
