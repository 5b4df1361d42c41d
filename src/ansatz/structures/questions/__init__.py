"""Questions about texts that hold the answer."""
