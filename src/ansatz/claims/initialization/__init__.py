"""Claims about the weights that training starts from."""
