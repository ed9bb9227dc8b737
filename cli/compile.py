"""`stormline compile`: writes what a cluster needs into a folder, and prints the spark-submit line."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from stormline.cli.bundle import Bundle, write_bundle
from stormline.cli.conf import conf_option, parse_conf
from stormline.cli.errors import UnsafeConf
from stormline.cli.target import TARGET_HELP, Target, load_target
from stormline.runtime.spark.settings import REQUIRED, check_no_secrets, check_safe
from stormline.topology.compiler import compile_topology
from stormline.topology.plan import Plan
from stormline.topology.secrets import literal_secrets

MASTER = "MASTER"
ZOOKEEPER = "HOST:PORT"

py_files_option = click.option(
    "--py-files",
    metavar="FILE[,FILE...]",
    multiple=True,
    callback=lambda context, parameter, given: tuple(name for text in given for name in text.split(",") if name),
    help="More for the zip: modules, folders of packages, zips, eggs, wheels. For what is imported by a computed name.",
)


@click.command("compile", epilog=TARGET_HELP)
@click.argument("target", metavar="MODULE[:ATTR]")
@click.option(
    "-o",
    "--output",
    "directory",
    metavar="DIR",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Where to write; made if missing, files of an earlier compile are replaced.",
)
@py_files_option
@conf_option
def compile_command(target: str, directory: Path, py_files: tuple[str, ...], conf: dict[str, Any]) -> None:
    """Write what a cluster needs into DIR, and print the spark-submit line.

    One zip with stormline, its pure-Python dependencies and the modules of your project that MODULE imports; one
    entry for spark-submit; the plan. Starts neither Spark nor ZooKeeper.

    Example: stormline compile examples.flight_delays -o build/flights
    """
    loaded = load_target(target)
    plan = compile_topology(loaded.topology, {**loaded.config, **conf})
    settings = settings_of(loaded, conf)
    bundle = bundle_target(loaded, plan, target, directory, py_files)
    click.echo(f"wrote {bundle.zip}, {bundle.entry.name} and {bundle.plan.name}", err=True)
    arguments = entry_settings(conf)
    if not names_zookeeper(loaded, conf):
        arguments += ["--zookeeper", ZOOKEEPER]
    click.echo(shlex.join(["spark-submit", "--master", MASTER, *settings, *files_of(bundle), *arguments]))


def bundle_target(loaded: Target, plan: Plan, target: str, directory: Path, py_files: tuple[str, ...]) -> Bundle:
    """Write the bundle, and say on standard error what has to be installed on the cluster."""
    _, colon, attribute = target.partition(":")
    name = loaded.module.__name__
    bundle, missing = write_bundle(name, attribute if colon else None, plan, directory, py_files)
    for package, importer in missing.items():
        click.echo(f"not in the zip, needed on every machine: {package} ({importer} imports it)", err=True)
    return bundle


def settings_of(loaded: Target, conf: Mapping[str, Any]) -> list[str]:
    """Return the part of a spark-submit line with what the laws need, and the topology's own `spark.*` settings.

    Raises:
        UnsafeSpark: one of these breaks a law, or would show a secret.
    """
    settings = dict(REQUIRED)
    for key, value in {**loaded.config, **conf}.items():
        if key.startswith("spark."):
            settings[key] = str(value).lower() if isinstance(value, bool) else str(value)
    check_safe(MASTER, settings)
    check_no_secrets(settings)
    return [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]


def files_of(bundle: Bundle) -> list[str]:
    """Return the part of a spark-submit line that names the bundle."""
    return ["--py-files", str(bundle.zip), str(bundle.entry)]


def entry_settings(conf: Mapping[str, Any]) -> list[str]:
    """Return the part of a spark-submit line that tells the entry what `--conf` said of the topology.

    Raises:
        UnsafeConf: a secret stands there as it is.
    """
    mine = {key: value for key, value in conf.items() if not key.startswith("spark.")}
    for key in literal_secrets(mine):
        raise UnsafeConf(
            f"--conf {key}=… gives a secret as it is, which every user of the machine sees on the command line; give "
            "env:NAME or file:PATH, and read it in prepare() by resolve_secret"
        )
    return [part for key, value in mine.items() for part in ("--conf", conf_text(key, value))]


def conf_text(key: str, value: Any) -> str:
    """Return the KEY=VALUE that `parse_conf` reads as this setting."""
    text = f"{key}={value}"
    return text if isinstance(value, str) and parse_conf((text,))[key] == value else f"{key}={json.dumps(value)}"


def names_zookeeper(loaded: Target, conf: Mapping[str, Any]) -> bool:
    """Return whether the topology's configuration says where ZooKeeper is."""
    from stormline.runtime.cluster.local_cluster import zookeeper_hosts  # kazoo: only what runs or submits needs it

    return zookeeper_hosts({**loaded.config, **conf}) is not None
