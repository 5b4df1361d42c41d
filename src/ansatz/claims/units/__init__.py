"""Claims about feed-forward units: layers, activations and connections."""
