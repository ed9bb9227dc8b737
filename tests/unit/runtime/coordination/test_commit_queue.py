"""The commit queue by hand: what begins, what is recorded, what is taken back; it waits for nothing and nobody."""

from __future__ import annotations

import pytest

from stormline.runtime.coordination.commit_queue import (
    PROOF_SECS,
    PROOF_TRIES,
    Begin,
    CommitQueue,
    Idle,
    Prove,
    Record,
    Stage,
)
from stormline.runtime.messages.wave import AttemptResult
from stormline.topology.attempt import TransactionAttempt


def result(txid: int, attempt: int = 1) -> AttemptResult:
    return AttemptResult(TransactionAttempt(txid, attempt))


def queue_of(*txids: int, committed: int = 0) -> CommitQueue:
    queue = CommitQueue(committed, committed)
    for txid in txids:
        queue.add(result(txid))
    return queue


def begun(queue: CommitQueue) -> str | None:
    """Return the attempt that begins now, if any."""
    step = queue.next(connected=True, proof_secs=0.0)
    return str(step.results[0].attempt) if isinstance(step, Begin) else None


def commit(queue: CommitQueue) -> str | None:
    """Let the next commit begin, end and be recorded."""
    attempt = begun(queue)
    if attempt is not None:
        assert isinstance(queue.finished(failed=False), Record)
        queue.recorded(written=True)
    return attempt


def test_commits_begin_in_order_each_after_the_record_of_the_one_before() -> None:
    queue = queue_of(3, 1, 2)
    assert begun(queue) == "1:1"
    assert (queue.committed, queue.begun) == (0, 1)
    assert begun(queue) is None
    assert queue.finished(failed=False) == Record(TransactionAttempt(1, 1))
    assert begun(queue) is None, "its record is on its way"
    queue.recorded(written=True)
    assert (queue.committed, queue.begun) == (1, 1)
    assert [commit(queue), commit(queue), commit(queue)] == ["2:1", "3:1", None]
    assert (queue.committed, queue.begun) == (3, 3)


def test_where_one_is_missing_later_ones_wait() -> None:
    queue = queue_of(2, 3)
    assert queue.next(connected=True, proof_secs=0.0) is Idle.WAIT
    queue.add(result(1))
    assert begun(queue) == "1:1"


def test_after_one_that_failed_nothing_begins_but_another_attempt_of_it() -> None:
    queue = queue_of(1, 2)
    assert begun(queue) == "1:1"
    assert queue.finished(failed=True) is None
    assert begun(queue) is None
    assert (queue.committed, queue.begun) == (0, 1)
    queue.revoke(1)
    assert not queue.waiting
    queue.add(result(2, 2))
    queue.add(result(1, 2))
    assert [commit(queue), commit(queue)] == ["1:2", "2:2"]


def test_from_a_txid_on_attempts_are_taken_back_and_earlier_ones_are_not() -> None:
    queue = queue_of(1, 2, 3, 4)
    queue.revoke(3)
    assert [commit(queue), commit(queue), commit(queue)] == ["1:1", "2:1", None]


def test_the_one_that_runs_is_taken_back_only_from_its_txid_on() -> None:
    queue = queue_of(1, 2)
    assert begun(queue) == "1:1"
    queue.revoke(2)
    assert queue.running is not None
    stages = [queue.running.stage]
    queue.revoke(1)
    stages.append(queue.running.stage)
    assert stages == [Stage.RUNS, Stage.REVOKED]


def test_one_that_was_revoked_is_not_recorded_and_nothing_begins_beside_it() -> None:
    queue = queue_of(1)
    assert begun(queue) == "1:1"
    assert queue.revoke_running()
    queue.revoke(1)
    queue.add(result(1, 2))
    assert begun(queue) is None, "what it still does must not come after the next attempt's effects"
    assert queue.finished(failed=False) is None
    assert queue.committed == 0
    assert commit(queue) == "1:2"


def test_one_whose_record_is_on_its_way_cannot_be_taken_back() -> None:
    queue = queue_of(1)
    assert not queue.revoke_running(), "nothing runs"
    assert begun(queue) == "1:1"
    assert queue.finished(failed=False) is not None
    assert not queue.revoke_running()
    with pytest.raises(AssertionError, match="is being recorded, and fails"):
        queue.revoke(1)
    queue.close()
    queue.recorded(written=True)
    assert queue.committed == 1


def test_after_a_record_of_which_nothing_is_known_no_commit_begins() -> None:
    queue = queue_of(1, 2)
    assert begun(queue) == "1:1"
    assert queue.finished(failed=False) is not None
    queue.recorded(written=False)
    queue.add(result(1, 2))
    assert begun(queue) is None
    assert (queue.committed, queue.begun, queue.running) == (0, 1, None)


def test_while_the_connection_is_suspended_none_begins_and_none_is_proved() -> None:
    queue = queue_of(1)
    assert queue.next(connected=False, proof_secs=0.0) is Idle.LOOK_AGAIN
    assert queue.next(connected=False, proof_secs=PROOF_SECS + 1) is Idle.LOOK_AGAIN
    assert queue.begun == 0
    assert begun(queue) == "1:1"


def test_the_ownership_is_proved_before_a_commit_and_again_where_that_took_long_but_not_for_ever() -> None:
    queue, late = queue_of(1, 2), PROOF_SECS + 0.01
    for _ in range(PROOF_TRIES):
        step = queue.next(connected=True, proof_secs=late)
        assert isinstance(step, Prove)
        assert step.result.attempt == TransactionAttempt(1, 1)
    assert isinstance(queue.next(connected=True, proof_secs=late), Begin)
    assert queue.finished(failed=False) is not None
    queue.recorded(written=True)
    assert isinstance(queue.next(connected=True, proof_secs=late), Prove), "the next commit has tries of its own"
    assert isinstance(queue.next(connected=True, proof_secs=PROOF_SECS), Begin)


def test_after_a_stop_the_one_that_runs_is_recorded_and_none_begins() -> None:
    queue = queue_of(1, 2)
    assert begun(queue) == "1:1"
    queue.stop()
    queue.add(result(3))
    assert queue.finished(failed=False) is not None
    queue.recorded(written=True)
    assert queue.committed == 1
    assert queue.next(connected=True, proof_secs=0.0) is Idle.WAIT
    assert not queue.waiting


def test_once_closed_the_one_that_runs_is_not_recorded_and_it_is_at_its_end() -> None:
    queue = queue_of(1, 2)
    assert begun(queue) == "1:1"
    queue.close()
    assert queue.finished(failed=False) is None
    assert queue.next(connected=True, proof_secs=0.0) is Idle.END


def test_what_is_committed_or_waits_cannot_be_added() -> None:
    queue = queue_of(5, committed=4)
    for again in (result(4, 2), result(5, 2)):
        with pytest.raises(AssertionError):
            queue.add(again)


class GroupsOfTwo(CommitQueue):
    """Law 1 (order)'s exception: two that wait share a step."""

    def _group(self, head: AttemptResult) -> tuple[AttemptResult, ...]:
        following = self.waiting.get(head.attempt.transaction_id + 1)
        return (head,) if following is None else (head, following)


def test_a_group_begins_is_recorded_and_is_revoked_together() -> None:
    queue = GroupsOfTwo(0, 0)
    for txid in (1, 2, 3, 4, 5):
        queue.add(result(txid))
    assert queue.next(connected=True, proof_secs=0.0) == Begin((result(1), result(2)))
    assert (queue.committed, queue.begun, list(queue.waiting)) == (0, 2, [3, 4, 5])
    assert queue.finished(failed=False) == Record(TransactionAttempt(2, 1))
    queue.recorded(written=True)
    assert queue.committed == 2
    assert queue.next(connected=True, proof_secs=0.0) == Begin((result(3), result(4)))
    queue.revoke(4)
    assert queue.finished(failed=False) is None
    assert (queue.committed, queue.begun, list(queue.waiting)) == (2, 4, [])
