"""DRPC: bolts that answer requests, in this process."""
