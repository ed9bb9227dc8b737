"""Tuples as bytes and as columns, and which task each goes to. Knows nobody."""
