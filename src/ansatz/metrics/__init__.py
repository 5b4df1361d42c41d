"""Numbers that judge predictions."""
