"""Claims about the methods that minimise a loss, and how fast they do."""
