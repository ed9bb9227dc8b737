"""A secret given by reference is nowhere: not in Spark's logs and pages, znodes, `ps`, tracebacks or closures."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.canary_driver import PLANTED

pytestmark = pytest.mark.proof

ROOT = Path(__file__).resolve().parents[2]
PARTS = ["canary-password-41f7", "canary-a90c", "canary-5d1e", "canary-77b3"]
SECRETS = {"CANARY_PASSWORD": "{}'{}\\{}\"{}".format(*PARTS), "payload": "storm:canary-payload-93d2"}
PLACES = ["closure", "events", "log", "output", "ps", "repr", "traceback", "ui", "znodes"]


def places_with(text: str, directory: Path) -> set[str]:
    """Return the places, files or folders of `directory`, in which a text stands."""
    found = set()
    for file in directory.rglob("*"):
        if file.is_file() and text.encode() in file.read_bytes():
            found.add(file.relative_to(directory).parts[0])
    return found


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("canary")
    (directory / "events").mkdir()
    (directory / "payload").write_text(f"{SECRETS['payload']}\n")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "CANARY_PASSWORD": SECRETS["CANARY_PASSWORD"]}
    with (directory / "output").open("wb") as output:
        subprocess.run(
            [sys.executable, "-m", "tests.spark.canary_driver", str(directory)],
            env=environment, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT, timeout=120, check=True,
        )  # fmt: skip
    (directory / "payload").unlink()
    return directory


def test_what_was_planted_is_found_in_every_place(seen: Path) -> None:
    assert sorted(places_with(PLANTED, seen)) == PLACES


@pytest.mark.parametrize("secret", [*PARTS, "canary-payload-93d2"])
def test_the_secret_is_nowhere(seen: Path, secret: str) -> None:
    assert places_with(secret, seen) == set()


def test_the_failure_is_still_told(seen: Path) -> None:
    text = (seen / "traceback").read_text()
    assert f"RuntimeError: cannot log in with ***** ({PLANTED})" in text
    assert "raise RuntimeError" in text
    assert "digest', id='storm:" in (seen / "znodes").read_text(errors="replace")


def test_the_search_finds_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    (tmp_path / "events" / "app").write_bytes(b"\xff canary-password-41f7 \0")
    assert places_with("canary-password-41f7", tmp_path) == {"events"}
