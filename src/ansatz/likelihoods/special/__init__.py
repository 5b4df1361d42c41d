"""Special functions of the likelihoods: tails, quadrature and root search."""
