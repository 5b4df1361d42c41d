"""Passages of documents: each token is predicted from those before it."""
