"""examples.stored_words without Spark: three tables that fit together, also when a commit is cut in the middle."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from examples import stored_words, words
from stormline import FailedException
from stormline.state.persistent_aggregate import StoreAggregates
from stormline.testing import InProcessCluster


@pytest.mark.parametrize("failing", [(), (2,), (1, 3, 4)])
def test_total_words_and_buckets_fit_together_and_replays_change_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, failing: tuple[int, ...]
) -> None:
    data = {0: ["cat"] * 25 + ["dog"] * 12, 1: [f"word {i}" for i in range(30)] + ["dog"] * 2}
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(stored_words, "DATA", data)
    monkeypatch.setattr(stored_words, "PARTITION_TAKE_PER_BATCH", 8)
    finish_batch = StoreAggregates.finish_batch
    cut: list[int] = []

    def cut_once(bolt: StoreAggregates) -> None:
        txid = bolt._attempt.transaction_id
        finish_batch(bolt)
        if bolt._work.map is stored_words.BUCKETS and txid in failing and txid not in cut:
            cut.append(txid)
            raise FailedException("after all is written, and before it is committed")

    monkeypatch.setattr(StoreAggregates, "finish_batch", cut_once)
    with InProcessCluster() as cluster, cluster.submit(stored_words.topology(), stored_words.config) as handle:
        assert handle.await_drained(20) == 5
    expected = Counter(word for rows in data.values() for word in rows)
    assert stored_words.TOTAL.map.items() == {"words": expected.total()}
    assert stored_words.WORDS.items() == expected
    buckets = Counter(count // words.BUCKET_SIZE for count in expected.values())
    assert {bucket: count for bucket, count in stored_words.BUCKETS.items().items() if count} == buckets
    assert cut == list(failing)
    assert stored_words.report().startswith("69 words in all\ncat      25\n")
