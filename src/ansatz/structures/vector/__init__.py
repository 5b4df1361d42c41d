"""Rows of a table: the order of the columns is fixed, nothing else is known."""
