"""Molecules and crystals: atoms in space."""
