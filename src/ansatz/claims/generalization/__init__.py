"""Learning theory and the phenomena it must explain."""
