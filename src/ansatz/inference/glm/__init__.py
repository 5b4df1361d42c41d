"""Bayesian generalised linear models, also with coefficients that vary between groups."""
