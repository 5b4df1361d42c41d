"""Feed-forward units: layers, activations, connections, and what each of them can do."""
