"""Claims about networks as kernels: linearisation, infinite width."""
