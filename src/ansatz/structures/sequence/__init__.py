"""Texts and signals of any length: steps in an order."""
