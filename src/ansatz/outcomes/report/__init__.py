"""What outcomes contribute to reports and comparisons."""
