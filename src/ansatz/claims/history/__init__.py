"""Claims about who published what, and when."""
