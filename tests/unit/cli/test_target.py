"""What MODULE[:ATTR] may name, and what is said where it names nothing usable."""

import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from stormline.cli.errors import AttributeMissing, ModuleMissing, TargetRaised, WrongTarget
from stormline.cli.target import load_target
from stormline.topology.errors import StormlineError, UnknownComponent

DECLARED = """
from stormline import MemoryTransactionalSpout, TransactionalTopologyBuilder
builder = TransactionalTopologyBuilder("declared", "spout", MemoryTransactionalSpout({0: [1]}, ["n"], 1))
"""
_numbers = count()

Write = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes a module into the current directory, and returns its name, which no other test uses."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))

    def write(body: str, declared: str = DECLARED) -> str:
        name = f"target_{next(_numbers)}"
        (tmp_path / f"{name}.py").write_text(declared + body)
        return name

    return write


@pytest.mark.parametrize(
    ("body", "attribute"),
    [
        ("topology = builder.build_topology()", ""),
        ("topology = builder", ""),
        ("def topology(): return builder", ""),
        ("def topology(partitions=3): return builder.build_topology()", ""),
        ("mine = builder", ":mine"),
    ],
)
def test_a_topology_a_builder_or_a_function_that_returns_one(write: Write, body: str, attribute: str) -> None:
    target = load_target(write(body) + attribute)
    assert target.topology.id == "declared"
    assert target.config == {}
    assert target.report is None


def test_the_current_directory_comes_first_on_the_path(write: Write, tmp_path: Path) -> None:
    load_target(write("topology = builder"))
    assert sys.path[0] == str(tmp_path)


@pytest.mark.parametrize(
    "body",
    ["config = {'mine': 1}", "def config(): return {'mine': 1}", "import stormline; config = stormline.Config(mine=1)"],
)
def test_a_module_may_have_a_config(write: Write, body: str) -> None:
    assert load_target(write(f"topology = builder\n{body}")).config == {"mine": 1}


def test_a_module_may_have_a_report(write: Write) -> None:
    report = load_target(write("topology = builder\ndef report(): return 'all is well'")).report
    assert report is not None
    assert report() == "all is well"


def error_of(kind: type[StormlineError], target: str) -> str:
    with pytest.raises(kind) as caught:
        load_target(target)
    return str(caught.value)


class TestAModuleThatDoesNotExist:
    def test_is_named_with_where_it_was_looked_for(self, write: Write, tmp_path: Path) -> None:
        message = error_of(ModuleMissing, "no_such_thing_at_all")
        assert (
            message == f"there is no module 'no_such_thing_at_all'; looked in {tmp_path} first, then where Python looks"
        )

    def test_is_named_with_the_nearest_one(self, write: Write) -> None:
        name = write("")
        assert error_of(ModuleMissing, f"{name}x") == f"there is no module '{name}x'; did you mean {name!r}?"

    def test_is_found_among_its_package_too(self) -> None:
        assert error_of(ModuleMissing, "examples.word") == (
            "there is no module 'examples.word'; did you mean 'examples.words'?"
        )

    def test_or_whose_parent_is_no_package(self) -> None:
        assert "there is no module 'examples.words.more'" in error_of(ModuleMissing, "examples.words.more")

    def test_is_not_confused_with_one_that_it_imports(self, write: Write) -> None:
        name = write("\nimport not_installed_here\n")
        message = error_of(TargetRaised, name)
        assert message.startswith("Traceback (most recent call last):\n  File ")
        assert f"{name}.py" in message.splitlines()[1]
        assert message.endswith(
            f"module {name!r} cannot be imported: ModuleNotFoundError: No module named 'not_installed_here'"
        )


class TestAPath:
    def test_is_answered_with_the_module(self, write: Write, tmp_path: Path) -> None:
        name = write("")
        assert error_of(ModuleMissing, f"{name}.py:mine") == (
            f"'{name}.py:mine' is a path, expected a module; did you mean {name}:mine?"
        )
        (tmp_path / "pack").mkdir()
        (tmp_path / "pack" / "__init__.py").touch()
        assert error_of(ModuleMissing, "pack/__init__.py").endswith("; did you mean pack?")
        (tmp_path / "pack" / "one.py").touch()
        assert error_of(ModuleMissing, "./pack/one.py").endswith("; did you mean pack.one?")

    def test_outside_of_the_current_directory_is_answered_with_what_to_do(self, write: Write) -> None:
        assert "is a path, expected a module: change to the directory" in error_of(ModuleMissing, "/elsewhere/one.py")


def test_what_cannot_be_a_module_name_is_refused() -> None:
    for text in ("", ":topology", "a-b", ".relative", "a..b"):
        assert "is no module name; expected MODULE[:ATTR]" in error_of(ModuleMissing, text)


class TestAnAttributeThatDoesNotExist:
    def test_is_named_with_the_nearest_one(self, write: Write) -> None:
        name = write("topology = builder")
        assert error_of(AttributeMissing, f"{name}:topologie") == (
            f"module {name!r} has no attribute 'topologie'; did you mean 'topology'?"
        )

    def test_is_named_with_what_to_do(self, write: Write) -> None:
        name = write("", declared="")
        assert error_of(AttributeMissing, name) == (
            f"module {name!r} has no attribute 'topology'; define 'topology', or name another as {name}:ATTR"
        )


class TestSomethingOfAnotherKind:
    @pytest.mark.parametrize(
        ("body", "got"),
        [
            ("topology = 3", ":topology is a int"),
            ("class topology: pass", ":topology is a class topology"),
            ("def topology(): return None", ":topology() is a NoneType"),
        ],
    )
    def test_is_no_topology(self, write: Write, body: str, got: str) -> None:
        name = write(body)
        expected = ", expected a Topology, a TransactionalTopologyBuilder, or a function that returns one"
        assert error_of(WrongTarget, name) == f"{name}{got}{expected}"

    def test_is_a_function_with_arguments(self, write: Write) -> None:
        name = write("def topology(size): return builder")
        assert error_of(WrongTarget, name) == (
            f"{name}:topology needs arguments (missing a required argument: 'size'), "
            "expected a function without required ones"
        )

    def test_is_no_config(self, write: Write) -> None:
        name = write("topology = builder\nconfig = 'mine=1'")
        assert error_of(WrongTarget, name) == f"{name}:config is a str, expected a Config, or another mapping"

    def test_is_no_report(self, write: Write) -> None:
        name = write("topology = builder\nreport = 'all is well'")
        assert error_of(WrongTarget, name) == f"{name}:report is a str, expected a function without arguments"


class TestUserCodeThatRaises:
    @pytest.mark.parametrize("raised", ["ValueError('on order')", "SystemExit(3)"])
    def test_in_the_module_or_in_the_function_shows_its_own_traceback_first(self, write: Write, raised: str) -> None:
        for body in (f"\nraise {raised}\n", f"\ndef topology():\n    raise {raised}\n"):
            name = write(body)
            message = error_of(TargetRaised, name)
            assert f"{name}.py" in message.splitlines()[1]
            assert "stormline" not in message.replace("from stormline", "")
            assert message.splitlines()[-1].startswith(
                (f"module {name!r} cannot be imported: ", f"{name}:topology() failed: ")
            )

    def test_by_its_syntax_shows_where(self, write: Write) -> None:
        name = write("\ntopology = = 3\n")
        message = error_of(TargetRaised, name)
        assert message.startswith("Traceback ")
        assert "topology = = 3" in message

    def test_in_the_report_shows_it_too(self, write: Write) -> None:
        name = write("topology = builder\ndef report():\n    return 1 / 0\n")
        report = load_target(name).report
        assert report is not None
        with pytest.raises(TargetRaised, match=r"(?s)^Traceback.*return 1 / 0.*report.. failed: ZeroDivisionError"):
            report()

    def test_what_is_declared_wrongly_is_told_as_ever(self, write: Write) -> None:
        body = """
from tests.kits.components import Batch
builder.set_bolt("b", Batch()).shuffle_grouping("spuot")
topology = builder
"""
        assert "did you mean 'spout'?" in error_of(UnknownComponent, write(body))


def test_a_secret_in_what_a_module_raises_is_not_shown(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_PASSWORD", "hunter2hunter2")
    name = write(
        "from stormline import resolve_secret\n"
        "def config():\n"
        "    password = resolve_secret('env:MY_PASSWORD')\n"
        "    raise RuntimeError(f'cannot connect as app:{password}@db')\n"
        "topology = builder.build_topology()\n"
    )
    with pytest.raises(TargetRaised, match="RuntimeError: cannot connect as app:") as raised:
        load_target(name)
    assert "hunter2" not in str(raised.value)
