"""What an expression of a user's source stands for, as far as reading tells."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stormline.cli.reading.classes import ClassView
    from stormline.cli.reading.code import Code
    from stormline.cli.reading.scope import Scope


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """An object that exists now, since a module or a class holds it: `name` as in the source, `home` whose it is.

    `copied`: the declared object has it as an attribute, so that the code works on a copy.
    """

    value: Any
    name: str
    home: str
    copied: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Inside:
    """Something that is, or will be, within an object that a module or a class holds."""

    root: Known


@dataclass(frozen=True, slots=True, eq=False)
class Foreign:
    """Something of a library, by the name that leads to it: `sqlite3.connect().execute`, `time.time`.

    `receiver` is the object that a module holds where it begins with one. `call` is the innermost call that made it.
    """

    dotted: str
    receiver: Known | None = None
    call: ast.Call | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Object:
    """An object of a user's class: the component, coordinator or emitter itself, or one that the code makes.

    `live` is the declared object, where there is one. `made` is the call that makes it, and the scope of that call.
    """

    view: ClassView
    live: Any = None
    made: tuple[ast.Call, Scope] | None = None
    itself: bool = False
    after: Any = None  # of `super()`: the class after which to look


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A function of the user's, bound to `receiver` where that is not None."""

    code: Code
    receiver: Known | Object | None = None


@dataclass(frozen=True, slots=True, eq=False)
class UserClass:
    """A class of the user's."""

    view: ClassView


@dataclass(frozen=True, slots=True, eq=False)
class Role:
    """What Stormline hands to user code: 'attempt', 'txid', 'collector', 'collector.emit', 'tuple', 'context', …"""

    name: str


Value = Known | Inside | Foreign | Object | Function | UserClass | Role


def key_of(value: Value) -> object:
    """Return what is equal for values that stand for the same."""
    match value:
        case Known():
            return ("known", id(value.value), value.name)
        case Inside():
            return ("inside", id(value.root.value), value.root.name)
        case Foreign():
            return ("foreign", value.dotted)
        case Object():
            return ("object", id(value.view.identity), id(value.live), value.itself)
        case Function():
            return ("function", id(value.code.node), None if value.receiver is None else key_of(value.receiver))
        case UserClass():
            return ("class", id(value.view.identity))
        case Role():
            return ("role", value.name)
