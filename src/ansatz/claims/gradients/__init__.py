"""Gradients: the chain rule, its cost, and what depth does to it."""
