"""Claims about Markov chains that sample a given distribution."""
