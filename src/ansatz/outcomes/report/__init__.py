"""The parts of reports and comparisons that outcomes contribute."""
