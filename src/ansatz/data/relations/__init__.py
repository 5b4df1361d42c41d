"""Rows that are relations between named things: triples of a knowledge graph, ratings."""
