"""The processing phase: one stage of one wave at work, and how stages are laid out."""
