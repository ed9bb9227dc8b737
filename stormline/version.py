"""The version of Stormline, which driver and executors must have in common."""

__version__ = "0.1.0"
