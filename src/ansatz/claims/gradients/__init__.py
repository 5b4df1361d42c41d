"""Claims about gradients: the chain rule, its cost, and the effect of depth."""
