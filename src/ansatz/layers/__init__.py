"""Building blocks of networks: activations, initialisation, normalisation, connections."""
