"""Tables larger than memory: read in blocks, preprocessed in one pass, trained on in batches."""
