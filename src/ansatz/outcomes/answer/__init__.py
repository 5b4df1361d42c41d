"""The outcome of questions: the part of a text that answers."""
