"""Which addresses are tweeted, and which domains? Two maps in one transaction, in a database that fails half the time.

    tweets (2 tasks) → urls → by-url-partial    → by-url (2 tasks, committer)    → one transaction
                            → by-domain-partial → by-domain (2 tasks, committer) ↗

The database loses every second commit, in turns before anything of it is stored and after all of it is. The batch is
replayed: what was not stored is stored then, what was stored is left alone. So the addresses of a domain always add up
to what the domain has, whoever reads the two tables, and at the end each tweeted address counts once.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from stormline import (
    BaseBasicBolt,
    Collector,
    Fields,
    MemoryTransactionalSpout,
    OutputFieldsDeclarer,
    Topology,
    TransactionalTopologyBuilder,
    Tuple,
)
from stormline.errors import StoreUnavailable
from stormline.state import Count, SQLiteStore, TransactionalMap, persistent_aggregate

TWEETS = {
    0: ["read https://spark.apache.org/docs and https://storm.apache.org/", "no address here", "see http://a.b/c"],
    1: [
        "https://storm.apache.org/releases is the page",
        "https://storm.apache.org/ again",
        "http://a.b/c http://a.b/d",
    ],
}
tries = itertools.count(1)
"""Counts how often a commit has been tried in this process."""


@dataclass(frozen=True)
class HalfBroken(SQLiteStore):
    """A SQLite database whose commits fail half the time, so that nobody knows what became of them."""

    def connect(self, reads: bool = False) -> Any:
        """Return a connection that breaks."""
        connection: Any = super().connect(reads)
        commit = connection.commit

        def commit_or_not() -> None:
            turn = next(tries) % 4
            if turn == 1:
                raise StoreUnavailable("cut before the commit")
            commit()
            if turn == 3:
                raise StoreUnavailable("cut after the commit, before its answer")

        connection.commit = commit_or_not
        return connection


STORE = HalfBroken(".stormline/tweeted-urls.sqlite")
BY_URL = TransactionalMap(STORE, "urls", key={"url": str}, value={"tweets": int})
BY_DOMAIN = TransactionalMap(STORE, "domains", key={"domain": str}, value={"tweets": int})


class Urls(BaseBasicBolt):
    """Finds the addresses of a tweet."""

    def execute(self, tup: Tuple, collector: Collector) -> None:
        """Emit each with its domain."""
        for word in tup.get_string(1).split():
            if word.startswith(("http://", "https://")):
                collector.emit([tup.get_value(0), word, urlsplit(word).netloc])

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare address and domain."""
        declarer.declare(Fields("tx", "url", "domain"))


def topology() -> Topology:
    """Declare the topology."""
    builder = TransactionalTopologyBuilder("tweeted-urls", "tweets", MemoryTransactionalSpout(TWEETS, ["text"], 1), 2)
    builder.set_bolt("urls", Urls(), 2).none_grouping("tweets")
    persistent_aggregate(builder, "by-url", "urls", BY_URL, {"tweets": Count()}, parallelism=2)
    persistent_aggregate(builder, "by-domain", "urls", BY_DOMAIN, {"tweets": Count()}, parallelism=2)
    return builder.build_topology()


def report() -> str:
    """Return what the database holds, the most tweeted first."""
    lines = []
    for domain, tweets in sorted(BY_DOMAIN.items().items(), key=lambda item: (-item[1], item[0])):
        lines.append(f"{tweets:>3} {domain}")
        urls = {url: count for url, count in BY_URL.items().items() if urlsplit(url).netloc == domain}
        lines += [f"    {count:>3} {url}" for url, count in sorted(urls.items())]
    return "\n".join(lines)
