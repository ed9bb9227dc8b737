"""Target: the topology that a command is given as MODULE[:ATTR], with the module's `config` and `report`."""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

from stormline.cli.errors import AttributeMissing, ModuleMissing, TargetRaised, WrongTarget
from stormline.topology.builder import TransactionalTopologyBuilder
from stormline.topology.errors import StormlineError, did_you_mean
from stormline.topology.secrets import without_secrets
from stormline.topology.storm_config import Config
from stormline.topology.topology import Topology

TARGET_HELP = """\
MODULE is imported as Python would import it from the current directory. ATTR (default: topology) is a Topology, a
TransactionalTopologyBuilder, or a function without arguments that returns one of them.
"""
DEFAULT_ATTRIBUTE = "topology"
_OURS = (f"{Path(__file__).parent.parent}{os.sep}", f"{Path(__file__).resolve().parent}{os.sep}")
_IMPORT_MACHINERY = ("<frozen ", importlib.__file__)


@dataclass(frozen=True, slots=True)
class Target:
    """What a module gives to the commands.

    `config` is the module's `config`, a mapping or a function that returns one; empty where there is none.
    `report` is the module's `report`, a function without arguments that `stormline run` calls after a run that
    ended well, to print the text that it returns; None where there is none.
    """

    module: ModuleType
    topology: Topology
    config: Config
    report: Callable[[], object] | None


def load_target(text: str, *, from_here: bool = True) -> Target:
    """Import what MODULE[:ATTR] names, with the current directory first on the path unless `from_here` is false.

    Raises:
        ModuleMissing, AttributeMissing: it does not exist; the message names the nearest one that does.
        WrongTarget: it is of another kind than expected.
        TargetRaised: the module, or the function that makes the topology, raised.
        StormlineError: what Stormline raised there, for a topology that was declared wrongly.
    """
    name, colon, attribute = text.partition(":")
    if os.sep in name or name.endswith(".py"):
        raise ModuleMissing(f"{text!r} is a path, expected a module{_module_of(name, colon + attribute)}")
    if not all(part.isidentifier() for part in name.split(".")):
        raise ModuleMissing(
            f"{text!r}: {name!r} is no module name; expected MODULE[:ATTR], as in examples.words:topology"
        )
    attribute = attribute or DEFAULT_ATTRIBUTE
    module = import_module(name, from_here=from_here)
    if not hasattr(module, attribute):
        names = [known for known in vars(module) if not known.startswith("_")]
        remedy = did_you_mean(attribute, names) or f"; define {attribute!r}, or name another as {name}:ATTR"
        raise AttributeMissing(f"module {name!r} has no attribute {attribute!r}{remedy}")
    where = f"{name}:{attribute}"
    topology = _topology(getattr(module, attribute), where)
    return Target(module, topology, _config(module), _report(module))


def import_module(name: str, *, from_here: bool = True) -> ModuleType:
    """Import a module with the current directory first on the path, or as Python does. Raises as `load_target`."""
    here = os.getcwd()
    if from_here and sys.path[:1] != [here]:
        sys.path.insert(0, here)
    importlib.invalidate_caches()
    try:
        return importlib.import_module(name)
    except StormlineError:
        raise
    except (Exception, SystemExit) as error:
        # One that fails inside of the user's module has frames there; one that does not exist has none.
        missing = isinstance(error, ModuleNotFoundError) and f"{name}.".startswith(f"{error.name}.")
        if missing and _users_frames(error) is None:
            raise ModuleMissing(f"there is no module {name!r}{_nearest_module(name)}") from None
        raise raised(error, f"module {name!r} cannot be imported") from error


def _module_of(path: str, suffix: str) -> str:
    try:
        relative = Path(path).resolve().relative_to(Path.cwd())
    except ValueError:
        relative = None
    if relative is None or not relative.with_suffix(".py").is_file():
        return ": change to the directory from which its imports work, and name it with dots, as in examples.words"
    parts = relative.with_suffix("").parts
    return f"; did you mean {'.'.join(parts[:-1] if parts[-1] == '__init__' else parts)}{suffix}?"


def _nearest_module(name: str) -> str:
    parent, _, _ = name.rpartition(".")
    if parent:
        try:
            path = list(importlib.import_module(parent).__path__)
        except Exception:
            path = []
    else:
        path = [os.getcwd()]
    known = [f"{parent}.{found.name}".lstrip(".") for found in pkgutil.iter_modules(path)]
    return did_you_mean(name, known) or f"; looked in {os.getcwd()} first, then where Python looks"


def _topology(found: Any, where: str) -> Topology:
    if callable(found) and not isinstance(found, type):
        found, where = _call(found, where), f"{where}()"
    if isinstance(found, TransactionalTopologyBuilder):
        return found.build_topology()
    if not isinstance(found, Topology):
        kind = f"class {found.__name__}" if isinstance(found, type) else type(found).__name__
        raise WrongTarget(
            f"{where} is a {kind}, expected a Topology, a TransactionalTopologyBuilder, or a function that returns one"
        )
    return found


def _config(module: ModuleType) -> Config:
    found, where = getattr(module, "config", None), f"{module.__name__}:config"
    if found is None or isinstance(found, ModuleType):
        return Config()
    if callable(found):
        found, where = _call(found, where), f"{where}()"
    if not isinstance(found, Mapping):
        raise WrongTarget(f"{where} is a {type(found).__name__}, expected a Config, or another mapping")
    return Config(found)


def _report(module: ModuleType) -> Callable[[], object] | None:
    found, where = getattr(module, "report", None), f"{module.__name__}:report"
    if found is None or isinstance(found, ModuleType):
        return None
    if not callable(found):
        raise WrongTarget(f"{where} is a {type(found).__name__}, expected a function without arguments")
    _check_no_arguments(found, where)
    return lambda: _call(found, where)


def _check_no_arguments(function: Callable[..., Any], where: str) -> None:
    try:
        inspect.signature(function).bind()
    except ValueError:  # one that does not tell
        return
    except TypeError as error:
        raise WrongTarget(f"{where} needs arguments ({error}), expected a function without required ones") from None


def _call(function: Callable[..., Any], where: str) -> Any:
    _check_no_arguments(function, where)
    try:
        return function()
    except StormlineError:
        raise
    except (Exception, SystemExit) as error:
        raise raised(error, f"{where}() failed") from error


def raised(error: BaseException, what: str) -> TargetRaised:
    """Return the error of a command in which the user's code has raised; `what` says in which call."""
    shown = "".join(traceback.format_exception(type(error), error, _users_frames(error)))
    if not shown.startswith("Traceback "):
        shown = f"Traceback (most recent call last):\n{shown}"
    return TargetRaised(without_secrets(f"{shown.rstrip()}\n\n{what}: {type(error).__name__}: {error}"))


def _users_frames(error: BaseException) -> TracebackType | None:
    """Return the traceback from the first frame that is neither ours nor the import machinery's."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename.startswith((*_OURS, *_IMPORT_MACHINERY)):
        frames = frames.tb_next
    return frames
