"""Whole architectures, by name."""
