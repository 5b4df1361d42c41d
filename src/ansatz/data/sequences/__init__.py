"""Texts and signals of unequal length: containers, tokens, batches, files."""
