"""replayed-effect: a bolt that may run again for the same batch changes something outside."""

from __future__ import annotations

from collections.abc import Iterator

from stormline.cli.reading.attempts import mentions_attempt
from stormline.cli.reading.effects import Again, Effect, effect_at
from stormline.cli.reading.parts import Part
from stormline.cli.rules.finding import Finding, found_at

RULE = "replayed-effect"
REMEDY = (
    "it happens again at every replay, and of batches that never commit: emit it to a committer, and write it in its "
    "finish_batch beside the txid"
)


def find(part: Part) -> Iterator[Finding]:
    """Yield each effect of a bolt that is not deferred, and of the execute of one that declares `gathers`.

    An effect that names the attempt, or that says what to do where it is there (on conflict, or ignore), is none.
    """
    if part.kind != "bolt" or (part.component.deferred and part.gathers is None):
        return
    methods = ("execute", "execute_batch") if part.component.deferred else ("execute", "execute_batch", "finish_batch")
    effects = [effect for place in part.reached(*methods) if (effect := effect_at(place)) is not None]
    statements = [effect for effect in effects if not effect.ends]
    for effect in statements or effects:
        if effect.again is not Again.NOTHING and not _names_attempt(effect):
            yield found_at(RULE, part, effect.place, f"does {effect.text}", REMEDY)


def _names_attempt(effect: Effect) -> bool:
    return mentions_attempt(effect.call, effect.place.scope, surely=True)
