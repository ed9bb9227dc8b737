"""The documentation, and what generates the parts that come from the code."""
