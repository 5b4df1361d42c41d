"""Signals, images and volumes: cells in rows, whose neighbours matter wherever they are."""

from ansatz.structures.grid.structure import Grid as Grid
