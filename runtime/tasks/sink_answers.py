"""What a sink answers, checked: people write them, and a slip should be told as one."""

from __future__ import annotations

from stormline.runtime.errors import WrongAnswer
from stormline.topology.errors import shown
from stormline.topology.two_phase_commit import CommitOutcome, PreparedTransaction


def checked_outcome(outcome: object, component: str) -> CommitOutcome:
    """Return what `commit` of a bolt's sink has returned; raise `WrongAnswer` where it is something else."""
    if isinstance(outcome, CommitOutcome):
        return outcome
    raise WrongAnswer(f"commit() of the sink of bolt {component!r} returned {shown(outcome)}, expected a CommitOutcome")


def checked_listing(listed: object, component: str) -> PreparedTransaction:
    """Return what `list_prepared` of a bolt's sink has given; raise `WrongAnswer` where it is something else."""
    if isinstance(listed, PreparedTransaction):
        age_secs: object = listed.age_secs
        if isinstance(listed.label, str) and (age_secs is None or isinstance(age_secs, (int, float))):
            return listed
    raise WrongAnswer(
        f"list_prepared() of the sink of bolt {component!r} gave {shown(listed)}, expected a PreparedTransaction("
        "label, handle, age_secs): the text of the label under which it was begun, what abort() takes, and a number or "
        "None"
    )
