"""The entity that completes a triple, as outcome."""
