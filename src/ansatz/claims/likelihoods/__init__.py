"""Claims about losses that are negative log-likelihoods."""
