"""examples.tweeted_urls without Spark: both tables fit together after each commit, and each address counts once."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from examples import tweeted_urls
from stormline.state import StateMap
from stormline.testing import InProcessCluster

EXPECTED = Counter(
    word for tweets in tweeted_urls.TWEETS.values() for text in tweets for word in text.split() if "://" in word
)


def domains_of(urls: dict[str, int]) -> Counter[str]:
    found = Counter[str]()
    for url, count in urls.items():
        found[urlsplit(url).netloc] += count
    return found


@pytest.mark.parametrize(("group", "replays"), [(1, 2), (64, 0)])
@pytest.mark.parametrize("first", [1, 2, 3, 4])
def test_each_address_counts_once_and_both_tables_fit_whichever_commits_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: int, group: int, replays: int
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tweeted_urls, "tries", itertools.count(first))
    fits: list[bool] = []
    begin_commit = StateMap.begin_commit

    def seen(self: StateMap, context: Any, attempt: Any) -> Any:
        fits.append(domains_of(tweeted_urls.BY_URL.items()) == tweeted_urls.BY_DOMAIN.items())
        return begin_commit(self, context, attempt)

    monkeypatch.setattr(StateMap, "begin_commit", seen)
    config = {"topology.commit.group.max": group}  # together they may be one commit, which may be one that succeeds
    with InProcessCluster() as cluster, cluster.submit(tweeted_urls.topology(), config) as handle:
        assert handle.await_drained(60) == 3
        assert handle.snapshot().replays >= replays
    assert fits
    assert all(fits)
    assert tweeted_urls.BY_URL.items() == EXPECTED
    assert tweeted_urls.BY_DOMAIN.items() == domains_of(EXPECTED)
    assert tweeted_urls.report().splitlines()[0] == "  3 a.b"
