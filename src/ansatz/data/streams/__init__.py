"""Tables larger than memory: read in blocks, learned from in one pass, trained on in batches."""
