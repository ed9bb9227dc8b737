"""EmitterTask: lets one emitter task emit its share of every attempt of a wave, and notes what defines each share."""

from __future__ import annotations

from typing import Any

from stormline.runtime.errors import PositionMissing
from stormline.runtime.messages.wave import AttemptResult, PartitionBatch, Wave, WaveAttempt
from stormline.runtime.tasks.batch_recorder import Recorder
from stormline.runtime.tasks.collector import TaskCollector
from stormline.runtime.tasks.spout_coordinator import described_by, number_of_partitions, present_of
from stormline.runtime.tasks.task_environment import TaskEnvironment
from stormline.runtime.tasks.task_hooks import tell_of_emits
from stormline.topology.contracts import IAnyPartitionedEmitter, ITransactionalEmitter
from stormline.topology.errors import FailedException, SerializationError
from stormline.topology.spout_parts import method_of
from stormline.topology.topology import ComponentKind


class ChangedBatch(FailedException):
    """A batch whose commit may have begun came out differently: it is tried again, never committed."""


class EmitterTask:
    """One emitter task in one wave; it moves the partitions' positions on, attempt by attempt."""

    def __init__(self, env: TaskEnvironment, task: int, wave: Wave) -> None:
        self._env = env
        self._spout = env.plan.spout
        self._index = self._spout.tasks.index(task)
        self._task = task
        self._positions = dict(wave.positions)
        self._committed = wave.committed

    def emit(self, wave_attempt: WaveAttempt, collector: TaskCollector, result: AttemptResult) -> None:
        """Emit this task's share of one attempt, where its emitter lives, and note its partitions and metrics.

        Raises what the emitter raises; `CallAbandoned` where the wave was cancelled.
        """

        def emit(emitter: Any) -> None:
            context = self._env.context(self._spout.id, self._task)
            collector.take_over()
            tell_of_emits(context, collector)
            try:
                self._emit(emitter, wave_attempt, collector, result.partitions)
                collector.finish("the call of the emitter")
            finally:  # the emitter counts for all attempts, one after another
                context.count_into(result.metrics)

        self._env.emitters.emit(self._task, emit)

    def _emit(
        self,
        emitter: Any,
        wave_attempt: WaveAttempt,
        collector: TaskCollector,
        partitions: dict[int, PartitionBatch],
    ) -> None:
        kind = self._spout.component.kind
        if kind is ComponentKind.TRANSACTIONAL_SPOUT:
            emitter.emit_batch(wave_attempt.attempt, self._env.copied(wave_attempt.metadata), collector)
            method_of(emitter, ITransactionalEmitter, "cleanup_before")(self._committed)
            return
        self._begin_batch(emitter, wave_attempt)
        if kind is ComponentKind.PARTITIONED_SPOUT:
            self._emit_partitioned(emitter, wave_attempt, collector, partitions)
        elif wave_attempt.frozen:
            self._emit_frozen(emitter, wave_attempt, collector, partitions)
        else:
            self._emit_opaque(emitter, wave_attempt, collector, partitions)

    def _begin_batch(self, emitter: Any, wave_attempt: WaveAttempt) -> None:
        described = described_by(wave_attempt.metadata)
        if described is None:
            return
        stored = {p: batch.metadata for p, batch in wave_attempt.stored.items() if batch.gave}
        given = [{p: at for p, at in known.items() if self._owns(p)} for known in (self._positions, stored)]
        begin = method_of(emitter, IAnyPartitionedEmitter, "begin_batch")
        begin(self._env.copied(described), *map(self._env.copied, given))

    def _owned(self, partitions: int) -> range:
        return range(self._index, partitions, len(self._spout.tasks))

    def _owns(self, partition: int) -> bool:
        return partition % len(self._spout.tasks) == self._index

    def _last(self, partition: int) -> Any:
        return self._env.copied(self._positions.get(partition))

    def _kept(self, metadata: Any, partition: int) -> Any:
        try:
            return self._env.copied(metadata)
        except SerializationError as error:
            what = f"metadata that spout {self._spout.id!r} gave for partition {partition}"
            raise type(error)(f"{what}: {error}") from error

    def _keep_absent(self, present: int, partitions: dict[int, PartitionBatch]) -> None:
        """Keep the positions of partitions that are not there now: they may come back."""
        for partition, position in self._positions.items():
            if partition >= present and self._owns(partition):
                partitions[partition] = PartitionBatch(position, 0, gave=False)

    def _emit_partitioned(
        self,
        emitter: Any,
        wave_attempt: WaveAttempt,
        collector: TaskCollector,
        partitions: dict[int, PartitionBatch],
    ) -> None:
        present = present_of(wave_attempt.metadata)
        for partition in self._owned(present):
            before = collector.emitted
            stored = wave_attempt.stored.get(partition)
            if stored is None:
                last = self._last(partition)
                metadata = emitter.emit_partition_batch_new(wave_attempt.attempt, collector, partition, last)
                if metadata is None and (last is not None or collector.emitted > before):
                    position = self._positions.get(partition)
                    rows = collector.emitted - before
                    raise PositionMissing.after(position, self._spout.id, partition, wave_attempt.attempt, rows)
                metadata = self._kept(metadata, partition)
            else:
                metadata, copy = stored.metadata, self._env.copied(stored.metadata)
                emitter.emit_partition_batch(wave_attempt.attempt, collector, partition, copy)
            rows = collector.emitted - before
            if stored is not None and wave_attempt.frozen and rows != stored.rows:
                raise ChangedBatch(
                    f"partition {partition} of spout {self._spout.id!r} gave {rows} tuples for transaction "
                    f"{wave_attempt.attempt}; it gave {stored.rows} when its commit began"
                )
            self._positions[partition] = metadata
            partitions[partition] = PartitionBatch(metadata, rows)
        self._keep_absent(present, partitions)

    def _emit_opaque(
        self,
        emitter: Any,
        wave_attempt: WaveAttempt,
        collector: TaskCollector,
        partitions: dict[int, PartitionBatch],
    ) -> None:
        who = f"the emitter of opaque spout {self._spout.id!r}, task {self._task}"
        present = number_of_partitions(who, emitter.num_partitions())
        for partition in self._owned(present):
            recorder = Recorder(collector, self._env.registry, None)
            last = self._last(partition)
            metadata = emitter.emit_partition_batch(wave_attempt.attempt, recorder, partition, last)
            gave = metadata is not None
            if recorder.rows and not gave:
                raise PositionMissing.after_tuples(self._spout.id, partition, wave_attempt.attempt, recorder.rows)
            position = self._kept(metadata, partition) if gave else self._positions.get(partition)
            self._positions[partition] = position
            partitions[partition] = PartitionBatch(position, recorder.rows, recorder.checksum, gave)
        self._keep_absent(present, partitions)

    def _emit_frozen(
        self,
        emitter: Any,
        wave_attempt: WaveAttempt,
        collector: TaskCollector,
        partitions: dict[int, PartitionBatch],
    ) -> None:
        mine = {p: b for p, b in wave_attempt.stored.items() if self._owns(p)}
        for partition, stored in mine.items():
            if stored.gave:
                recorder = Recorder(collector, self._env.registry, stored.rows)
                emitter.emit_partition_batch(wave_attempt.attempt, recorder, partition, self._last(partition))
                if not recorder.matches(stored.rows, stored.checksum):
                    raise ChangedBatch(
                        f"partition {partition} of opaque spout {self._spout.id!r} gave {recorder.rows} tuples for "
                        f"transaction {wave_attempt.attempt} that are not the {stored.rows} it gave when its commit "
                        "began; the transaction waits until it gives them again"
                    )
            self._positions[partition] = stored.metadata
        partitions.update(mine)
