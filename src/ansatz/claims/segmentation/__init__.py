"""Claims about a class for every pixel."""
