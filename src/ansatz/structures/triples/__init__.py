"""Queries of a knowledge graph."""
