"""Claims about optimisers and their rates of convergence."""
