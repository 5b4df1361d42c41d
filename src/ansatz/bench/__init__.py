"""Measures speed, memory and quality beside the alternatives: the suites of ``ansatz bench``."""
