"""examples.words without Spark: words that change their bucket, also when a commit is cut in the middle."""

from __future__ import annotations

from collections import Counter

import pytest

from examples import words
from stormline import FailedException
from stormline.runtime.cluster.in_process_cluster import InProcessCluster


@pytest.mark.parametrize("failing", [(), (2,), (1, 3, 4)])
def test_buckets_follow_the_words_and_replays_change_nothing(
    monkeypatch: pytest.MonkeyPatch, failing: tuple[int, ...]
) -> None:
    data = {0: ["cat"] * 25 + ["dog"] * 12, 1: [f"word {i}" for i in range(30)] + ["dog"] * 2}
    monkeypatch.setattr(words, "DATA", data)
    monkeypatch.setattr(words, "PARTITION_TAKE_PER_BATCH", 8)
    monkeypatch.setattr(words, "COUNT_DATABASE", {})
    monkeypatch.setattr(words, "BUCKET_DATABASE", {})
    finish_batch = words.BucketCountUpdater.finish_batch
    cut: list[int] = []

    def cut_once(bolt: words.BucketCountUpdater) -> None:
        txid = bolt.attempt.transaction_id
        finish_batch(bolt)
        if txid in failing and txid not in cut:
            cut.append(txid)
            raise FailedException("after the words are stored, and some of the buckets")

    monkeypatch.setattr(words.BucketCountUpdater, "finish_batch", cut_once)
    with InProcessCluster() as cluster:
        handle = cluster.submit_topology("words", words.config, words.topology())
        assert handle.await_drained(20) == 5
        handle.kill()
    expected = Counter(word for rows in data.values() for word in rows)
    assert {word: value.count for word, value in words.COUNT_DATABASE.items()} == expected
    buckets = Counter(count // words.BUCKET_SIZE for count in expected.values())
    assert {bucket: value.count for bucket, value in words.BUCKET_DATABASE.items() if value.count} == buckets
    assert cut == list(failing)
