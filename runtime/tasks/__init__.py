"""Tasks: the only room that calls user code."""
