"""The report of texts: what single ones depend on, lengths, attention."""
