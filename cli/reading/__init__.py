"""Reads the source of a user's classes, and says what an expression there stands for. Nothing is run."""
