"""Ported programs on Spark: those that lean most on their process. `tests/ports` runs them all in process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from stormline import LocalCluster
from tests.ports.expected import PORTS
from tests.ports.failing import failing
from tests.ports.test_programs import run


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(master="local[2]") as made:
        yield made


@pytest.mark.filterwarnings("ignore:unclosed database:ResourceWarning")
@pytest.mark.parametrize("name", ["tweets", "numbered_rows", "opaque_executor", "sqlite_outbox"])
def test_a_ported_program_is_right_on_spark_while_its_methods_fail(
    cluster: LocalCluster, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # In the driver, that is: the workers, which import the program themselves, run it undisturbed.
    monkeypatch.chdir(tmp_path)
    with failing(1, PORTS[name].program) as failures:
        handle = run(PORTS[name], cluster)
    found, expected = PORTS[name].check()
    assert found == expected
    assert failures.struck.total() > 0
    assert handle.snapshot().replays > 0
