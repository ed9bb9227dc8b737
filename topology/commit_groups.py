"""Which transactions may become durable together: the exception of law 1 (order), by what their authors declare.

Nothing is found out about objects: a bolt that does not say where all its effects go may have some anywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stormline.topology.commit_participants import CommitTarget
from stormline.topology.config import COMMIT_GROUP_MAX, setting
from stormline.topology.contracts import ICommitterTransactionalSpout
from stormline.topology.errors import InvalidEffects
from stormline.topology.plan import Placement, Plan
from stormline.topology.two_phase_bolt import decides


@dataclass(frozen=True, slots=True)
class CommitGroups:
    """How many transactions may become durable in one step of `target`; None: each by itself. `why` says so."""

    target: CommitTarget | None
    size_max: int
    why: str


def effects_of(component: Any) -> CommitTarget | None:
    """Return where all effects of a component's commit phase are, as it declares; None: it does not say."""
    target: CommitTarget | None = getattr(component, "effects_in", None)
    return target


def check_effects(bolt_id: str, bolt: Any) -> None:
    """Check that `effects_in` is something that takes part in a commit phase.

    Raises:
        InvalidEffects: it is something else.
    """
    target = effects_of(bolt)
    if target is None:
        return
    try:
        hash(target)
    except TypeError:
        hashable = False
    else:
        hashable = True
    if isinstance(target, type) or not hashable or not callable(getattr(target, "open_resource", None)):
        raise InvalidEffects(
            f"bolt {bolt_id!r} ({type(bolt).__name__}) has effects_in = {target!r}, expected the one store that all "
            "effects of its commit phase are in, as SQLiteStore(path); leave it out where there are others"
        )


def commit_groups(plan: Plan) -> CommitGroups:
    """Return whether the transactions that wait for their commits may become durable together."""
    deferred = [plan.components[name] for names in plan.commit_stages for name in names]
    size_max = int(setting(plan.config, COMMIT_GROUP_MAX))
    if isinstance(plan.spout.component.obj, ICommitterTransactionalSpout):
        return _apart(f"the emitters of spout {plan.spout.id!r} commit, too")
    for planned in plan.components.values():
        if decides(planned.component):
            return _apart(f"what bolt {planned.id!r} has pre-committed is committed in its turn")
    if not deferred:
        return _apart("no bolt takes part")
    for planned in deferred:
        if effects_of(planned.component.obj) is None:
            return _apart(f"bolt {planned.id!r} does not say by effects_in that all its effects are in one store")
        if planned.commit_placement is Placement.EXECUTORS:
            return _apart(f"bolt {planned.id!r} commits on the executors, each task by itself")
    targets = {planned.id: effects_of(planned.component.obj) for planned in deferred}
    (first, target), *others = targets.items()
    for name, other in others:
        if other != target:
            return _apart(f"the effects of bolt {first!r} are in {target}, those of {name!r} in {other}")
    if size_max == 1:
        return _apart(f"{COMMIT_GROUP_MAX} is 1")
    return CommitGroups(target, size_max, f"all effects are in {target}")


def _apart(why: str) -> CommitGroups:
    return CommitGroups(None, 1, why)
