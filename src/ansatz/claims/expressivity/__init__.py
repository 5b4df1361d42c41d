"""What networks can express: density, rates, linear regions, depth and width."""
