"""Signals, images and volumes: cells in rows, whose neighbours matter wherever they are."""
