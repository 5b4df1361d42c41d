"""Claims about the functions that networks can express: density, rates, regions, depth, width."""
