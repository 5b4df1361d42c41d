"""Claims about the dates of publications."""
