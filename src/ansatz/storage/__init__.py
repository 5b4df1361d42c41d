"""Files that survive a crash and never run code: atomic folders, tensors, locks."""
