"""Programs that tests read by name."""
