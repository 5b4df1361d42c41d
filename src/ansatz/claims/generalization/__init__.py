"""Claims about learning theory and the phenomena that it must explain."""
