"""What a two-phase bolt may be declared with."""

from __future__ import annotations

from typing import Any

import pytest

from stormline.bolts.two_phase_commit import TwoPhaseCommitBolt
from stormline.topology.errors import InvalidComponent
from stormline.topology.transaction_label import TransactionLabel
from stormline.topology.two_phase_commit import CommitOutcome, Semantic, TwoPhaseCommitSink


class _Sink(TwoPhaseCommitSink):
    def begin_transaction(self, label: TransactionLabel) -> Any:
        return [label.text]

    def pre_commit(self, transaction: Any) -> Any:
        return transaction[0]

    def commit(self, handle: Any) -> CommitOutcome:
        return CommitOutcome.DONE if handle == "here" else CommitOutcome.ALREADY

    def abort(self, handle: Any) -> None:
        self.aborted = handle


def test_what_is_recovered_is_committed_and_aborted_as_ever_unless_the_sink_says_otherwise() -> None:
    """Most resources do not tell the two apart."""
    sink = _Sink()
    assert sink.recover_and_commit("here") is CommitOutcome.DONE
    sink.recover_and_abort("gone")
    assert sink.aborted == "gone"
    assert sink.list_prepared("x-") is None


@pytest.mark.parametrize(("call", "name"), [("invoke", "tuples"), ("invoke_batch", "record batches")])
def test_a_sink_that_lacks_the_call_for_its_rows_says_which(call: str, name: str) -> None:
    """A sink has one of them, as the bolt needs it."""
    with pytest.raises(NotImplementedError, match=rf"_Sink has no {call}\(transaction, \w+\), which {name} are given"):
        getattr(_Sink(), call)(None, None)


def test_the_class_of_a_sink_is_refused() -> None:
    """A frequent slip."""
    message = r"TwoPhaseCommitBolt got the class _Sink as its sink, expected an object of a kind of TwoPhaseCommitSink"
    with pytest.raises(InvalidComponent, match=message):
        TwoPhaseCommitBolt(_Sink)  # type: ignore[arg-type]
    with pytest.raises(InvalidComponent, match="got a str as its sink"):
        TwoPhaseCommitBolt("file")  # type: ignore[arg-type]


def test_a_semantic_can_be_named_by_its_text_and_others_are_refused() -> None:
    """It comes from configurations, too."""
    assert TwoPhaseCommitBolt(_Sink(), "at least once").semantic is Semantic.AT_LEAST_ONCE  # type: ignore[arg-type]
    message = r"semantic = 'twice', expected one of Semantic.EXACTLY_ONCE, Semantic.AT_LEAST_ONCE, Semantic.NONE"
    with pytest.raises(InvalidComponent, match=message):
        TwoPhaseCommitBolt(_Sink(), "twice")  # type: ignore[arg-type]
