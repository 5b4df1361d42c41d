"""Models of x itself."""
