"""What the three axes promise the pipeline: contracts without members."""
