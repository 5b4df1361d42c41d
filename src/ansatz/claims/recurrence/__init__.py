"""Claims about recurrent networks."""
