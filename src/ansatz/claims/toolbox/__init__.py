"""Claims about identities of linear algebra, calculus, probability and information."""
