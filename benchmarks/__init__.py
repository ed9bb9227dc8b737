"""Benchmarks; each prints ratios of things measured alternately in one run."""
