"""unchecked-txid: a bolt that adds to something outside at the commit never looks at which transaction it is."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from stormline.cli.reading.attempts import is_attempt, mentions_attempt
from stormline.cli.reading.code import is_users
from stormline.cli.reading.effects import Again, effect_at
from stormline.cli.reading.guards import builds_on
from stormline.cli.reading.objects import file_of
from stormline.cli.reading.parts import Part
from stormline.cli.reading.reach import Place
from stormline.cli.reading.values import Foreign, Function, Object, Role, UserClass, Value
from stormline.cli.reading.writes import writes_at
from stormline.cli.rules.finding import Finding, found_at
from stormline.cli.rules.static_state import told

RULE = "unchecked-txid"
REMEDY = (
    "a transaction that was stored and not recorded commits again: store its txid beside the value, and skip what has "
    "this txid already"
)
WHOLE = (
    "each try of a transaction has another attempt id, so this is never the one that is stored: store and compare "
    "attempt.transaction_id"
)
_OWN_SQL = re.compile(r"stormline\.state\.\w+\.\w+\(\)\.transaction\(\)\.")
_METHODS = ("prepare", "execute", "execute_batch", "finish_batch")
_TELLS_NOTHING = frozenset(
    {"print", "tuple", "list", "dict", "set", "str", "repr", "int", "format", "isinstance", "type"}
)


def find(part: Part) -> Iterator[Finding]:
    """Yield what a bolt of the commit phase adds, where neither attempt, txid nor commit id is compared or handed over.

    A value that is set, whatever was there, comes out the same a second time.
    """
    if part.kind != "bolt" or not part.component.deferred or _has_other_bases(part) or _is_decorated(part):
        return
    places = list(part.reached(*_METHODS))
    writes = list(_additions(part))
    if not writes:
        return
    whole = [place for place in places if _compares_whole_attempt(place)]
    looks = [place for place in places if place not in whole and _looks_at_attempt(place)]
    if whole and not looks:
        yield found_at(RULE, part, whole[0], f"compares the whole attempt: {ast.unparse(whole[0].node)}", WHOLE)
    elif not looks:
        place, what = writes[0]  # it is one mistake, however much is stored
        yield found_at(RULE, part, place, f"{what}, and never compares a txid", REMEDY)


def _additions(part: Part) -> Iterator[tuple[Place, str]]:
    methods = ("finish_batch",) if part.gathers is not None else ("execute", "execute_batch", "finish_batch")
    for place in part.reached(*methods):
        for write in writes_at(place):
            if write.shared and builds_on(write):
                yield place, told(write)
        effect = effect_at(place)
        if effect is not None and effect.again is Again.MORE and not _is_fenced(place):
            yield place, f"does {effect.text}"


def _is_fenced(place: Place) -> bool:
    """Return whether it is SQL in a store's own transaction, which undoes what is stored already."""
    callee = place.scope.value(place.node.func) if isinstance(place.node, ast.Call) else None
    return isinstance(callee, Foreign) and bool(_OWN_SQL.match(callee.dotted))


def _looks_at_attempt(place: Place) -> bool:
    node, scope = place.node, place.scope
    asked: list[ast.AST]
    match node:
        case ast.Compare():
            asked = [node]
        case ast.Subscript(slice=index):
            asked = [index]
        case ast.Return(value=value) | ast.Yield(value=value) if value is not None:
            asked = [value]
        case ast.Match(subject=subject):
            asked = [subject]
        case ast.Call():
            return _hands_over(node, place)
        case _:
            return False
    return any(mentions_attempt(one, scope) for one in asked)


def _hands_over(node: ast.Call, place: Place) -> bool:
    """Return whether a call gets the attempt, or the bolt itself, and may compare it."""
    scope = place.scope
    callee = scope.value(node.func)
    args = [*node.args, *(keyword.value for keyword in node.keywords)]
    match callee:
        case Role():
            return False
        case Foreign(dotted=dotted):
            if dotted in _TELLS_NOTHING or dotted.startswith(("stormline.", "logging.", "super().")):
                return False
        case UserClass(view=view):
            if view.method("__init__") is None:  # a dataclass, a named tuple
                return False
        case Function():
            args = [arg for arg in args if not _followed(scope.value(arg))]
    if any(isinstance(value := scope.value(arg), Object) and value.itself for arg in args):
        return True
    return any(mentions_attempt(arg, scope) for arg in args)


def _followed(value: Value | None) -> bool:
    """Return whether a function of the user's that gets it is read with it, so that its own places tell."""
    return isinstance(value, Role) or (isinstance(value, Object) and value.itself)


def _compares_whole_attempt(place: Place) -> bool:
    match place.node:
        case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq()], comparators=[right]):
            roles = [place.scope.value(side) for side in (left, right)]
            whole = [isinstance(role, Role) and role.name == "attempt" for role in roles]
            others = [role for role, is_whole in zip(roles, whole, strict=True) if not is_whole]
            constant = any(isinstance(side, ast.Constant) for side in (left, right))
            return len(others) == 1 and not constant and not (isinstance(others[0], Role) and is_attempt(others[0]))
    return False


def _has_other_bases(part: Part) -> bool:
    """Return whether a library's class, which is not read, has a say in what the bolt does."""
    for cls in type(part.declared).__mro__:
        if cls.__module__.partition(".")[0] in ("stormline", "builtins", "abc", "typing"):
            continue
        if not is_users(cls.__module__, file_of(cls.__module__), part.packages):
            return True
    return False


def _is_decorated(part: Part) -> bool:
    """Return whether a decorator, which is not read, has a say in what the bolt does."""
    nodes = [code.node for code in part.view.methods() if code.name in _METHODS]
    decorators = [one for node in nodes if not isinstance(node, ast.Lambda) for one in node.decorator_list]
    return any(ast.unparse(one).rpartition(".")[2] != "override" for one in decorators)
