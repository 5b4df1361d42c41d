"""The pipeline, once for all: from a request to a fitted model with its evidence."""
