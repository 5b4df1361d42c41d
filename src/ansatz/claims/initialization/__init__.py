"""Claims about initial weights."""
