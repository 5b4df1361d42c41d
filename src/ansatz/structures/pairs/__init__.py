"""Pairs: something to read, and the text that belongs to it."""
