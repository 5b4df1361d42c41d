"""Claims about the first neurons."""
