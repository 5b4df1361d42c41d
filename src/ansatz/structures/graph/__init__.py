"""Graphs, and the nodes and pairs of nodes of one."""
