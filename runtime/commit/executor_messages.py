"""Commits on the executors: what crosses between the driver and the Spark tasks of a commit. Knows no Spark.

One turn of a commit phase is one Spark job. Its input is what came back to the driver with the wave's result: bytes,
shipped with the job, so that nothing stands before it that could be computed again. Nothing leans on Spark running a
task once (law 7, one execution): there are five ways in which one runs twice (docs/measured.md). What becomes of each:

- *Task failure*, and *executor loss* while the task runs: Spark may run the task again (after an executor that died
  through no fault of the application even with spark.task.maxFailures=1). It then says so: a Spark attempt number
  above 0. `second_execution` refuses that before anything is unpacked; no user code runs, the attempt fails and is
  replayed under a new attempt id, hence with a new token (epoch, txid, attempt).
- *Speculation*: as above, the copy's number is above 0. (`spark.speculation` is refused at the start as well.)
- *Fetch failure*, the one way in which a number begins at 0 again, and *executor loss* after the task has ended, which
  computes finished map outputs and cached partitions again: the job has no shuffle, no cache and one stage, so there is
  no output to fetch or to lose.
- *A second driver*: fenced by the epoch in ZooKeeper and in the token, as for commits on the driver.

What cannot be closed is a zombie: a Spark task whose executor is cut off, or whose job was cancelled, and that goes on
while the replay runs. Its token is smaller than the replay's, and a store that checks tokens in its own transaction
turns it away (law 6, fencing), as it does the thread of a commit on the driver that was abandoned.

**Law 5 (complete input)**: a cut input looks complete to Spark's Python workers, so each part says how many bolt tasks
and tuples it holds, with a checksum; and the driver takes a turn as run only when every bolt task has replied.
"""

from __future__ import annotations

import pickle
import struct
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

from stormline.runtime.messages.commit_request import CommitPart, CommitRequest, PartReply
from stormline.runtime.tasks.task_environment import TaskEnvironment
from stormline.runtime.tuples.delivery import Delivery
from stormline.runtime.tuples.packing import Packed
from stormline.topology.errors import CorruptData

# ---------------------------------------------------------------------------------------- one execution


def second_execution(spark_attempt: int) -> str | None:
    """Return why a Spark task must not run user code: Spark has begun it before, so its token may be in use."""
    if spark_attempt == 0:
        return None
    return f"this Spark task may have run before (attempt number {spark_attempt} of Spark's): nothing is run twice"


# ---------------------------------------------------------------------------------------- parts

_HEADER = struct.Struct(">4sIII")  # magic, bolt tasks, tuples, checksum of what follows
_PART, _REPLY = b"slCp", b"slCr"


def split(request: CommitRequest, parts_max: int) -> list[bytes]:
    """Return the sealed input of each Spark task: task i of the turn is in part i mod n, n at most `parts_max`."""
    n = max(1, min(parts_max, len(request.tasks)))
    parts = (CommitPart(request.attempt, request.tasks[i::n], request.commit_id) for i in range(n))
    return [_seal(_PART, part, len(part.tasks), _tuples(task.given.tuples for task in part.tasks)) for part in parts]


def read_part(sealed: bytes) -> CommitPart:
    """Return what `split` sealed; raise `CorruptData` where it is not all there."""
    part, *counts = _unseal(_PART, sealed)
    tasks, tuples = counts
    if not isinstance(part, CommitPart) or [len(part.tasks), _tuples(t.given.tuples for t in part.tasks)] != counts:
        raise CorruptData(f"a part of a commit that should hold {tasks} bolt tasks and {tuples} tuples does not")
    return part


def seal_reply(reply: PartReply) -> bytes:
    """Return a reply as bytes for Spark's own channel."""
    return _seal(_REPLY, reply, len(reply.tasks), _tuples(task.sent for task in reply.tasks))


def read_reply(sealed: bytes) -> PartReply:
    """Return what `seal_reply` sealed; raise `CorruptData` where it is not all there."""
    reply, *counts = _unseal(_REPLY, sealed)
    tasks, tuples = counts
    if not isinstance(reply, PartReply) or [len(reply.tasks), _tuples(t.sent for t in reply.tasks)] != counts:
        raise CorruptData(f"a reply that should speak for {tasks} bolt tasks and {tuples} tuples does not")
    return reply


def _tuples(boxes: Iterable[Sequence[Delivery]]) -> int:
    return sum(delivery.rows for box in boxes for delivery in box)


def _seal(magic: bytes, content: CommitPart | PartReply, tasks: int, tuples: int) -> bytes:
    body = pickle.dumps(content, protocol=5)
    return _HEADER.pack(magic, tasks, tuples, zlib.crc32(body)) + body


def _unseal(magic: bytes, sealed: bytes) -> tuple[Any, int, int]:
    if len(sealed) < _HEADER.size:
        raise CorruptData(f"{len(sealed)} bytes are no part of a commit")
    found, tasks, tuples, checksum = _HEADER.unpack_from(sealed)
    body = memoryview(sealed)[_HEADER.size :]
    if found != magic or zlib.crc32(body) != checksum:
        raise CorruptData(f"a part of a commit with {tasks} bolt tasks and {tuples} tuples was cut or changed")
    return pickle.loads(body), tasks, tuples


# ---------------------------------------------------------------------------------------- tuples


def packed(deliveries: Iterable[Delivery], env: TaskEnvironment) -> list[Delivery]:
    """Return deliveries whose tuples are bytes, to leave this process; user serializers write here."""
    return [delivery if isinstance(delivery.tuples, Packed) else _packed(delivery, env) for delivery in deliveries]


def _packed(delivery: Delivery, env: TaskEnvironment) -> Delivery:
    assert not isinstance(delivery.tuples, Packed)
    source = env.source(env.plan.edges[delivery.edge], delivery.source_task)
    return delivery._replace(tuples=Packed.of(delivery.tuples, source, env.registry))
