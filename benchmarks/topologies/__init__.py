"""The topologies that are measured, on a spout that costs next to nothing a tuple."""
