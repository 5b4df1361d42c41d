"""Claims about convolutions."""
