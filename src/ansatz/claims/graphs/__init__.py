"""Claims about networks on graphs."""
