"""Topologies to read and to run: `stormline run examples.NAME`."""
