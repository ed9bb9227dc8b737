"""The driver's loop: what is processed, replayed and committed, and when. Knows protocols only."""
