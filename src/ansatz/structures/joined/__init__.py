"""Rows with columns of several kinds: texts, images, numbers and categories."""
