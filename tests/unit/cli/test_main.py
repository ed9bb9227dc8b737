"""The commands that start nothing, and how every command ends on an error."""

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import click
import pytest
from click.testing import CliRunner, Result

from stormline import __version__
from stormline.cli.conf import parse_conf
from stormline.cli.main import main


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, prog_name="stormline")


def test_version() -> None:
    assert call("--version").output == f"stormline, version {__version__}\n"


@pytest.mark.parametrize("command", sorted(main.commands))
def test_every_command_has_help_with_an_example(command: str) -> None:
    done = call(command, "--help")
    assert done.exit_code == 0
    assert f"stormline {command} [OPTIONS]" in done.output
    assert f"Example: stormline {command} " in " ".join(done.output.split())
    for parameter in main.commands[command].params:
        assert isinstance(parameter, click.Argument) or getattr(parameter, "help", None), parameter.name


def test_no_command_but_run_and_submit_imports_spark_or_zookeeper() -> None:
    code = (
        "import sys, stormline.cli.main\n"
        "print([name for name in sys.modules if name.split('.')[0] in ('pyspark', 'py4j', 'kazoo')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


class TestCalledWrongly:
    @pytest.mark.parametrize(
        ("arguments", "line"),
        [
            (
                "run --mastr local",
                "there is no option '--mastr'; did you mean '--master'? (all of them: stormline run --help)",
            ),
            ("run examples.words --keep-runing", "there is no option '--keep-runing'; did you mean '--keep-running'?"),
            ("explain examples.words --cnof a=b", "there is no option '--cnof'; did you mean '--conf'?"),
            ("visualize examples.words --outptu x", "there is no option '--outptu'; did you mean '--output'?"),
            ("compile examples.words --py-file x", "there is no option '--py-file'; did you mean '--py-files'?"),
            ("submit examples.words --zookeper h", "there is no option '--zookeper'; did you mean '--zookeeper'?"),
            (
                "submit examples.words --executor-memroy 1g",
                "no option '--executor-memroy'; did you mean '--executor-memory'?",
            ),
            ("submit examples.words --jars --jras --drvier-memory=2g", "no option '--drvier-memory'; did you mean"),
            ("--versoin", "there is no option '--versoin'; did you mean '--version'? (all of them: stormline --help)"),
            ("rnu examples.words", "there is no command 'rnu'; did you mean 'run'? (all of them: stormline --help)"),
            ("run", "Missing argument 'MODULE[:ATTR]' (all of them: stormline run --help)"),
            ("run examples.words --until no", "Invalid value for '--until': 'no' is not a valid integer"),
            ("run --fresh --state-dir x examples.words", "--fresh and --state-dir exclude each other"),
        ],
    )
    def test_what_no_command_takes_is_one_line_and_exit_code_2(self, arguments: str, line: str) -> None:
        done = call(*arguments.split())
        assert done.exit_code == 2
        assert done.stdout == ""
        assert done.stderr.startswith("error: ")
        assert line in done.stderr
        assert done.stderr.count("\n") == 1

    def test_a_flag_that_is_like_none_goes_to_spark_submit(self) -> None:
        done = call("submit", "examples.words", "--dry-run", "--unheard-of", "--driver-java-options", "--verboze")
        assert done.exit_code == 0
        assert "--unheard-of --driver-java-options --verboze" in done.stdout


class TestExplain:
    def test_prints_the_plan(self) -> None:
        done = call("explain", "examples.global_count")
        assert done.exit_code == 0
        assert done.stdout.startswith("topology global-count\n\nProcessing phase: up to 3 transactions at once\n")
        assert "  sum  batch bolt, committer  1 task (9)  finishes\n" in done.stdout

    def test_takes_settings_over_those_of_the_module(self) -> None:
        done = call("explain", "examples.global_count", "--conf", "topology.max.spout.pending=12")
        assert "up to 12 transactions at once" in done.stdout

    def test_ends_with_1_and_one_line_where_something_is_wrong(self) -> None:
        done = call("explain", "examples.global_cuont")
        assert (done.exit_code, done.stdout) == (1, "")
        assert (
            done.stderr == "error: there is no module 'examples.global_cuont'; did you mean 'examples.global_count'?\n"
        )

    def test_tells_of_an_attribute_that_does_not_exist(self) -> None:
        done = call("explain", "examples.words:topolgy")
        assert done.exit_code == 1
        assert done.stderr == "error: module 'examples.words' has no attribute 'topolgy'; did you mean 'topology'?\n"

    def test_tells_of_a_wrong_setting(self) -> None:
        done = call("explain", "examples.words", "--conf", "topology.max.spout.pending=many")
        assert done.exit_code == 1
        assert done.stderr == (
            "error: configuration of topology 'top-n-words': topology.max.spout.pending is 'many', "
            "expected a whole number of at least 1, below 2**31\n"
        )

    def test_ends_with_2_where_it_is_called_wrongly(self) -> None:
        assert call("explain").exit_code == 2
        assert call("explain", "examples.words", "--nonsense").exit_code == 2
        done = call("explain", "examples.words", "--conf", "nonsense")
        assert done.exit_code == 2
        assert "'nonsense': expected KEY=VALUE, as in topology.max.spout.pending=64" in done.stderr


def test_a_users_traceback_is_printed_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "raises_at_once.py").write_text("1 / 0\n")
    done = call("explain", "raises_at_once")
    assert done.exit_code == 1
    assert done.stderr.startswith("Traceback (most recent call last):\n")
    assert done.stderr.endswith(
        "ZeroDivisionError: division by zero\n\n"
        "module 'raises_at_once' cannot be imported: ZeroDivisionError: division by zero\n"
    )


class TestVisualize:
    def test_prints_mermaid(self) -> None:
        done = call("visualize", "examples.words")
        assert done.exit_code == 0
        assert done.stdout.startswith("flowchart LR\n")
        assert '|"fields(word)"|' in done.stdout

    def test_prints_dot(self) -> None:
        assert call("visualize", "examples.words", "--format", "dot").stdout.startswith('digraph "top-n-words" {\n')

    def test_writes_what_the_suffix_says(self, tmp_path: Path) -> None:
        for name in ("words.svg", "words.dot", "words.mmd"):
            done = call("visualize", "examples.words", "-o", str(tmp_path / name))
            assert (done.exit_code, done.output) == (0, "")
        assert ElementTree.parse(tmp_path / "words.svg").getroot().tag.endswith("svg")
        assert (tmp_path / "words.dot").read_text().startswith("digraph")
        assert (tmp_path / "words.mmd").read_text().startswith("flowchart")

    def test_a_format_that_is_given_wins_over_the_suffix(self, tmp_path: Path) -> None:
        call("visualize", "examples.words", "-o", str(tmp_path / "words.svg"), "--format", "dot")
        assert (tmp_path / "words.svg").read_text().startswith("digraph")

    def test_a_suffix_that_is_not_known_is_refused(self, tmp_path: Path) -> None:
        done = call("visualize", "examples.words", "-o", str(tmp_path / "words.png"))
        assert done.exit_code == 2
        assert "suffix '.png' stands for is not known; give --format" in done.stderr
        assert not (tmp_path / "words.png").exists()

    def test_tells_of_a_file_that_cannot_be_written(self, tmp_path: Path) -> None:
        done = call("visualize", "examples.words", "-o", str(tmp_path / "nowhere" / "words.svg"))
        assert done.exit_code == 1
        assert "nowhere/words.svg': No such file or directory" in done.stderr


class TestRunCalledWrongly:
    def test_fresh_and_a_state_directory_exclude_each_other(self, tmp_path: Path) -> None:
        done = call("run", "examples.words", "--fresh", "--state-dir", str(tmp_path))
        assert done.exit_code == 2
        assert "--fresh and --state-dir exclude each other" in done.stderr

    @pytest.mark.parametrize("option", [["--fresh"], ["--state-dir", "x"]])
    def test_both_are_for_the_embedded_zookeeper(self, option: list[str]) -> None:
        done = call("run", "examples.words", *option, "--conf", "transactional.zookeeper.servers=a,b")
        assert done.exit_code == 2
        expected = f"{option[0]} is for the embedded ZooKeeper, but the configuration names a:2181,b:2181"
        assert expected in " ".join(done.stderr.split())

    def test_a_state_directory_that_cannot_be_made_shows_before_anything_starts(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        done = call("run", "examples.words", "--state-dir", str(tmp_path / "file" / "state"))
        assert done.exit_code == 1
        assert done.stderr.startswith(f"error: state directory {tmp_path}/file/state cannot be used (Not a directory)")

    def test_a_file_in_the_place_of_the_state_shows_before_anything_starts(self, tmp_path: Path) -> None:
        (tmp_path / "zookeeper").touch()
        done = call("run", "examples.words", "--state-dir", str(tmp_path))
        assert done.exit_code == 1
        assert done.stderr.startswith(f"error: state directory {tmp_path} cannot be used (File exists)")

    def test_a_time_that_is_none_is_refused(self) -> None:
        done = call("run", "examples.words", "--timeout", "nan")
        assert done.exit_code == 2
        assert "nan is no time" in done.stderr

    @pytest.mark.parametrize("command", ["run", "submit"])
    def test_a_setting_of_a_wrong_kind_is_told_at_once(self, command: str) -> None:
        done = call(command, "examples.words", "--conf", "transactional.zookeeper.servers=5")
        assert done.exit_code == 1
        assert "transactional.zookeeper.servers is 5, expected" in done.stderr

    def test_what_is_declared_wrongly_shows_before_anything_starts(self) -> None:
        done = call("run", "examples.words", "--fresh", "--conf", "topology.max.spout.pendign=3")
        assert done.exit_code == 1
        assert "unknown key 'topology.max.spout.pendign'; did you mean 'topology.max.spout.pending'?" in done.stderr


class TestConf:
    def test_values_are_json_else_text(self) -> None:
        assert parse_conf(("a=1", "b=true", "c=[1, 2]", 'd="1.10"', "e=some text", "f=x=y", "g=")) == {
            "a": 1, "b": True, "c": [1, 2], "d": "1.10", "e": "some text", "f": "x=y", "g": "",
        }  # fmt: skip

    def test_values_of_spark_stay_text(self) -> None:
        assert parse_conf(("spark.executor.cores=2", "spark.ui.enabled=true")) == {
            "spark.executor.cores": "2",
            "spark.ui.enabled": "true",
        }

    def test_hosts_may_be_given_with_commas(self) -> None:
        assert parse_conf(("transactional.zookeeper.servers=a, b",)) == {"transactional.zookeeper.servers": ["a", "b"]}
        assert parse_conf(('storm.zookeeper.servers=["a"]',)) == {"storm.zookeeper.servers": ["a"]}

    def test_the_last_value_of_a_key_wins(self) -> None:
        assert parse_conf(("a=1", "a=2")) == {"a": 2}
