"""How JVMs are started for the suite."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.services import jvm


def test_an_archive_that_was_not_made_is_not_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jvm, "FOLDER", tmp_path)
    assert jvm.options("spark") == jvm.SHORT
    assert jvm.environment().keys() == {"SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS", "KAFKA_OPTS"}


def test_options_stay_whole_in_the_environment_where_the_path_has_a_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jvm, "FOLDER", tmp_path / "a b")
    jvm.FOLDER.mkdir()
    (jvm.FOLDER / "spark.jsa").touch()
    options = jvm.options("spark")
    assert f"-XX:SharedArchiveFile={tmp_path}/a b/spark.jsa" in options
    assert shlex.split(jvm.environment()["SPARK_SUBMIT_OPTS"]) == list(options)
    assert jvm.environment()["KAFKA_OPTS"] == " ".join(jvm.SHORT), "it has no archive"
