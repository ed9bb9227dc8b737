"""Durable state: one topology's tree of values, what a stored value looks like, and who owns it."""
