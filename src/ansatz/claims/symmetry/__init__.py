"""Claims about invariance and equivariance."""
