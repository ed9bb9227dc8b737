"""What can be wrong with a Kafka sink, its ledger and its records; the rest is as for the spouts."""

from __future__ import annotations

from stormline.topology.errors import DeclarationError, StormlineError


class InvalidKafkaSink(DeclarationError):
    """A Kafka sink, or a committer into one, that cannot be declared, or used, like this."""


class RecordRefused(StormlineError, ValueError):
    """A record that cannot be written: too large, of a type that is no bytes, for a partition that is not there."""


class LedgerUnusable(StormlineError):
    """The ledger's topic does not keep what a sink writes there, or holds what no sink wrote."""
