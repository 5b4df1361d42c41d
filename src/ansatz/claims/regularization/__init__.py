"""Claims about regularisation and normalisation."""
