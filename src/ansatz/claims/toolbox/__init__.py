"""The cheat sheet: identities of linear algebra, calculus, probability and information."""
