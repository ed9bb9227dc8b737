"""What goes wrong, and how often: the seed draws a weight for each kind of fault, many of them nought."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

REQUEST_FAULTS = ("lost request", "lost reply", "late request", "slow", "expired before", "expired after")
WRITE_FAULTS = (*REQUEST_FAULTS, "driver: killed in a write", "driver: paused in a write", "driver: ousted")
DATABASE_FAULTS = ("database: refused", "database: lost COMMIT reply", "database: slow")
STORE_FAULTS = (*DATABASE_FAULTS, "driver: killed in a COMMIT")
RERUN_FAULTS = ("task: lost", "task: doubled", "task: recomputed")
INPUT_FAULTS = ("task: cut input", "task: doubled block", "task: lost block", "task: cut block", "task: old block")
TASK_FAULTS = (*RERUN_FAULTS, "task: late")
WAVE_FAULTS = ("job: failed", "job: no report", "job: executor lost")
COMMIT_FAULTS = (*WAVE_FAULTS, "job: zombie")
USER_FAULTS = ("bolt: failed", "emitter: failed", "coordinator: failed", "committer: failed")
SINK_FAULTS = ("sink: refused", "sink: lost reply", "sink: slow")
PREPARE_FAULTS = ("sink: PREPARE refused", "sink: PREPARE unanswered", "sink: late PREPARE")
HANGS = ("emitter: hangs", "coordinator: hangs", "committer: hangs")
BUGS = ("bolt: bug", "committer: bug")
DRIVER_FAULTS = ("zookeeper: outage", "driver: killed", "driver: paused", "driver: second", "driver: stopped")
CLAIM_FAULTS = ("driver: unclaimed",)
CONNECTION_FAULTS = ("connection: flaps", "follower: lags")
STATE_FAULTS = ("state: set back",)
SPOUT_FAULTS = ("partition: vanished", "spout: read otherwise")

WEIGHTS = {
    **dict.fromkeys(REQUEST_FAULTS, 0.03),
    "driver: killed in a write": 0.02,
    "driver: paused in a write": 0.08,
    "driver: ousted": 0.01,
    "driver: unclaimed": 0.05,
    "expired before": 0.004,
    "expired after": 0.004,
    **dict.fromkeys(DATABASE_FAULTS, 0.06),
    **dict.fromkeys((*TASK_FAULTS, *INPUT_FAULTS), 0.06),
    **dict.fromkeys(COMMIT_FAULTS, 0.08),
    **dict.fromkeys(USER_FAULTS, 0.02),
    **dict.fromkeys(HANGS, 0.01),
    **dict.fromkeys(BUGS, 0.002),
    **dict.fromkeys(DRIVER_FAULTS, 0.35),
    "connection: flaps": 0.1,
    "follower: lags": 0.3,
    **dict.fromkeys(SPOUT_FAULTS, 0.15),
    "state: set back": 1.0,
    "task: recomputed": 0.3,
    "job: zombie": 0.2,
    "job: cut report": 0.05,
    "closed unheard": 0.5,
}
"""How probable each fault is, each time that it could happen, where its weight is 1. Of drivers: a second."""

STORE_WEIGHTS = {"driver: killed in a COMMIT": 0.2}
"""As `WEIGHTS`; of these faults all weights are the same."""

SINK_WEIGHTS = {
    **dict.fromkeys(SINK_FAULTS, 0.06),
    **dict.fromkeys(PREPARE_FAULTS, 0.04),
    "sink: forgets": 0.02,
}
"""As `STORE_WEIGHTS`."""


class Faults:
    """Draws the faults of one seed. `on` is false where none may happen any more."""

    def __init__(self, random: Random, note: Callable[[str], None], on: bool = True) -> None:
        self._random = random
        self._note = note
        self.on = on
        self.counts: Counter[str] = Counter()
        scale = random.choice((0.3, 1.0, 1.0, 2.0))
        self._chances = {
            kind: weight * scale * random.choice((0.0, 0.3, 1.0, 1.0, 3.0)) for kind, weight in WEIGHTS.items()
        } | {kind: weight * scale for kind, weight in (STORE_WEIGHTS | SINK_WEIGHTS).items()}

    def strikes(self, kind: str) -> bool:
        """Return whether this fault happens here and now, and count it."""
        if not self.on or self._random.random() >= self._chances[kind]:
            return False
        self._count(kind)
        return True

    def _count(self, kind: str) -> None:
        self.counts[kind] += 1
        self._note(f"FAULT {kind}")

    def one_of(self, kinds: tuple[str, ...]) -> str | None:
        """Return which of these faults happens here and now; it is counted, so all of them must be possible."""
        if not self.on:
            return None
        drawn = self._random.random()
        for kind in kinds:
            drawn -= self._chances[kind]
            if drawn < 0:
                self._count(kind)
                return kind
        return None

    def of_request(self, write: bool) -> str | None:
        """Return what happens to a request to ZooKeeper."""
        if write:
            return self.one_of(WRITE_FAULTS)
        return self.one_of(REQUEST_FAULTS) if self._random.random() < 0.3 else None

    def of_connect(self) -> bool:
        """Return whether an attempt to connect fails."""
        return self.on and self._random.random() < 0.1

    def network_secs(self) -> float:
        """Return what a message takes."""
        return 0.0003 + self._random.random() * 0.002

    def long_secs(self) -> float:
        """Return what a message takes that is held up."""
        return self._random.choice((0.02, 0.2, 1.0, 4.0)) * (0.5 + self._random.random())

    def reconnect_secs(self) -> float:
        """Return what passes before the next attempt to connect."""
        return self._random.choice((0.05, 0.05, 0.3, 1.0) if self.on else (0.05,)) * (0.5 + self._random.random())

    def lag_secs(self) -> float:
        """Return how long a follower stays behind: a claim waits 6 s for the session of a driver that has died."""
        return self._random.choice((0.1, 1.0, 9.0, 9.0)) * (0.5 + self._random.random())

    def pause_secs(self) -> float:
        """Return how long a driver is paused: its session lasts about two seconds."""
        return self._random.choice((0.2, 1.0, 4.0, 12.0)) * (0.5 + self._random.random())

    def chance(self, probability: float) -> bool:
        """Toss a coin that is no fault."""
        return self._random.random() < probability

    def below(self, n: int) -> int:
        """Return a number from 0 up to n."""
        return self._random.randrange(n)
