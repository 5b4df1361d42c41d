"""What x looks like: one file per answer."""
