"""The parts of a report that are about columns of a table."""
