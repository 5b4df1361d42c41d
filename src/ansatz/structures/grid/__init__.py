"""Signals, images and volumes: values on a regular grid, whose neighbours matter."""
