"""What goes to and fro between the driver and its engine: waves, their results, turns of commits."""
