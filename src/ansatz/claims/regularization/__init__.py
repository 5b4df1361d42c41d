"""Regularisation and normalisation: the tricks of the trade, and what each of them is."""
