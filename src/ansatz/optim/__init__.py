"""Update rules and schedules, by name."""
