"""The stage of the spout's emitters, where they emit in the driver: it runs here, before the wave's Spark job."""

from __future__ import annotations

from stormline.runtime.messages.wave import Wave
from stormline.runtime.processing.slot_layout import Layout
from stormline.runtime.processing.slot_report import SlotReport, read_report
from stormline.runtime.processing.stage_runner import SlotBlock, StageRunner
from stormline.runtime.tasks.task_environment import TaskEnvironment
from stormline.runtime.tuples.blocks import FOR_DRIVER, stage_of
from stormline.topology.plan import Placement


def run_driver_stage(env: TaskEnvironment, layout: Layout, wave: Wave) -> tuple[list[SlotBlock], list[SlotReport]]:
    """Run stage 0 here, where the spout's data lives in the driver; nothing where Spark runs stage 0."""
    if layout.plan.stages[0].placement is not Placement.DRIVER:
        return [], []
    env.emitters.begin_wave()
    given = list(StageRunner(env, layout, wave, 0, 0).run(()))
    return (
        [(slot, block) for slot, block in given if stage_of(block) != FOR_DRIVER],
        [read_report(block) for _, block in given if stage_of(block) == FOR_DRIVER],
    )
