"""Claims about attention and transformers."""
