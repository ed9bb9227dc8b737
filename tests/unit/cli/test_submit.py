from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from stormline.cli.compile import compile_command, conf_text
from stormline.cli.conf import parse_conf
from stormline.cli.entry import main as entry_main
from stormline.cli.errors import SparkSubmitMissing
from stormline.cli.submit import spark_submit, submit_command
from stormline.runtime.cluster.local_cluster import LocalCluster, zookeeper_hosts
from stormline.runtime.errors import NoZooKeeper, UnsafeSpark
from stormline.runtime.spark.settings import REQUIRED, check_safe
from stormline.topology.errors import InvalidConfig, UnknownConfigKey

MODULE = "tests.topologies.cluster_sum"
SAFE = ["--conf", "spark.speculation=false", "--conf", "spark.task.maxFailures=1"]
SAFE += ["--conf", "spark.stage.maxConsecutiveAttempts=1"]


@pytest.fixture(autouse=True)
def no_spark_here(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SPARK_HOME", "PYSPARK_PYTHON"):
        monkeypatch.delenv(name, raising=False)


def compiled(*arguments: str) -> Result:
    return CliRunner().invoke(compile_command, [MODULE, *arguments])


def dry_run(*arguments: str) -> list[str]:
    done = CliRunner().invoke(submit_command, [MODULE, "--dry-run", *arguments])
    assert done.exit_code == 0, done.output
    return shlex.split(done.stdout)


class TestCompile:
    def test_prints_the_spark_submit_line_and_nothing_else_on_stdout(self, tmp_path: Path) -> None:
        done = compiled("-o", str(tmp_path / "a b"))
        assert done.exit_code == 0, done.output
        assert shlex.split(done.stdout) == [
            "spark-submit", "--master", "MASTER", *SAFE, "--py-files", f"{tmp_path}/a b/cluster-sum.zip",
            f"{tmp_path}/a b/cluster-sum-entry.py", "--zookeeper", "HOST:PORT",
        ]  # fmt: skip

    def test_settings_of_spark_go_before_the_entry_and_others_after_it(self, tmp_path: Path) -> None:
        conf = ["spark.executor.memory=2g", "topology.workers=3", 'transactional.zookeeper.servers=["a","b:99"]']
        done = compiled("-o", str(tmp_path), *(part for pair in conf for part in ("--conf", pair)))
        line = shlex.split(done.stdout)
        entry = line.index(f"{tmp_path}/cluster-sum-entry.py")
        assert line[3 : entry - 2] == [*SAFE, "--conf", "spark.executor.memory=2g"]
        assert line[entry + 1 :] == [
            "--conf", "topology.workers=3", "--conf", 'transactional.zookeeper.servers=["a", "b:99"]',
        ]  # fmt: skip

    def test_a_setting_that_breaks_a_law_is_refused(self, tmp_path: Path) -> None:
        done = compiled("-o", str(tmp_path / "out"), "--conf", "spark.task.maxFailures=4")
        assert isinstance(done.exception, UnsafeSpark)
        assert not (tmp_path / "out").exists()

    @pytest.mark.parametrize("text", ["a=1", "a=x", 'a="1"', "a=[1, 2]", "a=true", "a=", "a=b=c"])
    def test_settings_keep_their_value_and_type_on_the_way_to_the_entry(self, text: str) -> None:
        conf = parse_conf((text,))
        assert parse_conf((conf_text("a", conf["a"]),)) == conf


class TestSubmit:
    def test_flags_that_are_not_ours_go_to_spark_submit(self) -> None:
        line = dry_run("--master", "spark://h:1", "--executor-memory", "1g", "--supervise", "-o", "out")
        program = line.index(str(spark_submit()))
        assert line[:program] == [f"PYSPARK_PYTHON={sys.executable}"]
        assert line[program + 1 :] == [
            "--master", "spark://h:1", "--executor-memory", "1g", "--supervise", *SAFE,
            "--conf", "spark.log.level=ERROR", "--py-files", "out/cluster-sum.zip", "out/cluster-sum-entry.py",
        ]  # fmt: skip

    def test_options_of_the_entry_go_to_the_entry(self) -> None:
        line = dry_run(
            "--zookeeper", "h:1", "--keep-running", "--verbose", "--conf", "sum.database=x", "--progress", "json"
        )
        assert line[line.index("DIR/cluster-sum-entry.py") + 1 :] == [
            "--zookeeper", "h:1", "--keep-running", "--verbose", "--progress", "json", "--conf", "sum.database=x",
        ]  # fmt: skip
        assert "spark.log.level=ERROR" not in line

    def test_short_options_are_whole_words_only(self, tmp_path: Path) -> None:
        line = dry_run("--driver-java-options", "-Dhost=x", "-Dfoo=bar", "-c", "sum.database=x", "-o", str(tmp_path))
        assert line[2:5] == ["--driver-java-options", "-Dhost=x", "-Dfoo=bar"]
        assert line[-3:] == [str(tmp_path / "cluster-sum-entry.py"), "--conf", "sum.database=x"]
        done = CliRunner().invoke(submit_command, [MODULE, "-c", "topology.max.spot.pending=4", "--dry-run"])
        assert isinstance(done.exception, UnknownConfigKey)
        assert "Compile a topology" in CliRunner().invoke(submit_command, ["-h"]).output

    def test_a_dry_run_writes_nothing(self, tmp_path: Path) -> None:
        dry_run("-o", str(tmp_path / "out"))
        assert list(tmp_path.iterdir()) == []

    def test_a_python_that_is_named_is_left_alone(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert "PYSPARK_PYTHON" not in dry_run("--conf", "spark.pyspark.python=/usr/bin/python3")[0]
        monkeypatch.setenv("PYSPARK_PYTHON", "python3.11")
        assert "PYSPARK_PYTHON" not in dry_run()[0]

    def test_flags_before_the_module_are_refused(self) -> None:
        done = CliRunner().invoke(submit_command, ["--master", "local", MODULE])
        assert done.exit_code == 2
        assert "MODULE comes first, before --master: stormline submit MODULE[:ATTR] --master ..." in done.output

    def test_a_spark_home_without_spark_submit_is_named(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SPARK_HOME", str(tmp_path))
        with pytest.raises(
            SparkSubmitMissing, match=r"bin/spark-submit does not exist, or may not be executed: set SPARK_HOME to"
        ):
            spark_submit()

    def test_spark_home_goes_before_the_package(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin" / "spark-submit").touch(0o755)
        monkeypatch.setenv("SPARK_HOME", str(tmp_path))
        assert dry_run()[1] == f"{tmp_path}/bin/spark-submit"

    def test_without_any_spark_the_remedy_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
        with pytest.raises(SparkSubmitMissing, match="set SPARK_HOME, or install the package pyspark"):
            spark_submit()


@pytest.mark.parametrize(("ignored", "left"), [(True, False), (False, True)])
def test_a_hangup_stops_the_driver_but_under_nohup(ignored: bool, left: bool, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    submit = tmp_path / "bin" / "spark-submit"
    submit.write_text("#!/bin/sh\necho begun\nexec sleep 60\n")
    submit.chmod(0o755)
    with subprocess.Popen(
        [sys.executable, "-m", "stormline.cli.main", "submit", MODULE],
        env={**os.environ, "SPARK_HOME": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN if ignored else signal.SIG_DFL) and None,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "begun\n"
            process.send_signal(signal.SIGHUP)
            if left:
                assert process.wait(30) == 143
            else:
                with pytest.raises(subprocess.TimeoutExpired):
                    process.wait(1)
        finally:
            process.send_signal(signal.SIGTERM)


def test_a_signal_that_comes_as_soon_as_spark_submit_is_there_ends_it(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    submit = tmp_path / "bin" / "spark-submit"
    submit.write_text("#!/bin/sh\nkill -TERM $PPID\nexec sleep 60\n")
    submit.chmod(0o755)
    command = [sys.executable, "-m", "stormline.cli.main", "submit", MODULE]
    assert subprocess.run(command, env={**os.environ, "SPARK_HOME": str(tmp_path)}, timeout=30).returncode == 143


class TestEntry:
    def test_ctrl_c_while_the_module_is_imported_is_exit_code_130(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def load(*args: Any, **kwargs: Any) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr("stormline.cli.entry.load_target", load)
        assert entry_main(MODULE, []) == 130

    def test_a_module_that_is_not_in_the_bundle_is_an_error(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert entry_main("nowhere_at_all", []) == 1
        assert "error: there is no module 'nowhere_at_all'" in capsys.readouterr().err

    def test_a_wrong_option_is_exit_code_2(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert entry_main(MODULE, ["--nonsense"]) == 2
        error = capsys.readouterr().err
        assert error.startswith("error: there is no option '--nonsense' (all of them: ")
        assert error.count("\n") == 1

    def test_a_state_directory_beside_zookeeper_servers_is_refused(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert entry_main(MODULE, ["--zookeeper", "h:1", "--state-dir", str(tmp_path / "state")]) == 2
        error = capsys.readouterr().err
        assert "--state-dir is for the embedded ZooKeeper, but the configuration names h:1" in error
        assert not (tmp_path / "state").exists()


class TestSafety:
    def test_a_cluster_needs_each_of_the_settings(self) -> None:
        check_safe("spark://h:1", REQUIRED)
        for key, needed in REQUIRED.items():
            missing = {other: value for other, value in REQUIRED.items() if other != key}
            with pytest.raises(UnsafeSpark, match=f"{key} is not set, expected {needed}: .* --conf {key}={needed}"):
                check_safe("spark://h:1", missing)
            with pytest.raises(UnsafeSpark, match=f"{key} is 4, expected {needed}"):
                check_safe("yarn", {**REQUIRED, key: "4"})

    @pytest.mark.parametrize("master", ["", "loacl[2]", "local[2", "local[]", "Local", "spark//host:7077", "local[*] "])
    def test_what_is_no_master_is_refused_before_spark_is_asked(self, master: str) -> None:
        with pytest.raises(InvalidConfig, match=rf"master is '{re.escape(master)}', expected local, local\[N\]"):
            LocalCluster(master=master)

    @pytest.mark.parametrize(
        "master", ["local", "local[*]", "local[2,1]", "local-cluster[2,1,1024]", "spark://a:1,b:2", "yarn", "k8s://h"]
    )
    def test_every_master_of_spark_is_taken(self, master: str) -> None:
        LocalCluster(master=master)

    def test_a_local_master_never_runs_a_task_twice(self) -> None:
        check_safe("local[4]", {})
        check_safe("local[*, 1]", {})
        with pytest.raises(
            UnsafeSpark, match=r"local\[4,3\] Spark tries a task 3 times, expected once: .*; leave out the 3"
        ):
            check_safe("local[4,3]", {})

    def test_local_cluster_of_spark_is_no_local_master(self) -> None:
        with pytest.raises(UnsafeSpark):
            check_safe("local-cluster[2,1,1024]", {})

    def test_a_cluster_needs_a_place_for_the_state(self) -> None:
        class Context:
            master = "spark://h:1"

        with pytest.raises(NoZooKeeper, match=r"Spark runs on spark://h:1, and there is no ZooKeeper .* --zookeeper"):
            LocalCluster()._start_zookeeper(Context())  # type: ignore[arg-type]

    def test_servers_may_bring_their_ports(self) -> None:
        servers = {"transactional.zookeeper.servers": ["a", "b:99", "[::1]", "[::1]:7"]}
        assert zookeeper_hosts(servers) == "a:2181,b:99,[::1]:2181,[::1]:7"


class TestPrinting:
    def test_a_run_goes_on_when_nobody_reads_what_it_prints(self) -> None:
        code = (
            "import os\n"
            "from stormline.cli.reporter import Reporter\n"
            "reader, writer = os.pipe()\n"
            "os.dup2(writer, 2)\n"
            "os.close(writer)\n"
            "with Reporter() as reporter:\n"
            "    os.close(reader)\n"
            "    reporter.notice('one')\n"
            "    reporter.notice('two')\n"
            "print('went on')\n"
        )
        done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, timeout=60)
        assert (done.returncode, done.stdout) == (0, "went on\n")
