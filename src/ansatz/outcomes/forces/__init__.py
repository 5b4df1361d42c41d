"""Energies and forces of molecules as outcome."""
