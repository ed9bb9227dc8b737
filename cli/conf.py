"""`--conf KEY=VALUE`: settings given on the command line."""

from __future__ import annotations

import json
from typing import Any

import click

from stormline.topology.config import KNOWN_KEYS

_PYTHON = {"True": True, "False": False, "None": None}


def parse_conf(pairs: tuple[str, ...]) -> dict[str, Any]:
    """Return the settings that KEY=VALUE texts give; the last one of a key wins.

    Values of `spark.*` keys stay text, as Spark has it. Others are JSON where they can be read as JSON, else text; a
    list of hosts may be given with commas. So `topology.max.spout.pending=64` is a number, and text that looks
    like one takes quotes: `my.version='"1.10"'`. Python's True, False and None are understood too.

    Raises:
        click.BadParameter: a text without "=" or without a key, or a value nested too deeply.
    """
    conf: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        key = key.strip()
        if not (key and equals):
            raise click.BadParameter(f"{pair!r}: expected KEY=VALUE, as in topology.max.spout.pending=64")
        try:
            conf[key] = text if key.startswith("spark.") else _value(key, text)
        except RecursionError:
            raise click.BadParameter(f"{key}: the value is nested too deeply") from None
    return conf


def _value(key: str, text: str) -> Any:
    if text in _PYTHON:
        return _PYTHON[text]
    try:
        return json.loads(text)
    except ValueError:
        pass
    if key in KNOWN_KEYS and KNOWN_KEYS[key].kind == "hosts or none":
        return [host.strip() for host in text.split(",")]
    return text


conf_option = click.option(
    "--conf",
    metavar="KEY=VALUE",
    multiple=True,
    callback=lambda context, parameter, pairs: parse_conf(pairs),
    help="A setting of the topology or of Spark, over the module's own; may be repeated. Values are JSON, else text.",
)
