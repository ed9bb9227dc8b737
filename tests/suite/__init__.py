"""The suite: what `make test` and `make proof` run, in parts, side by side."""
