"""Runs a topology that knows secrets, lets it fail, and keeps all that anybody could see of it: one file a place.

`python -m tests.spark.canary_driver DIRECTORY`. Secrets come from env:CANARY_PASSWORD and file:DIRECTORY/payload;
PLANTED is put, openly, into every place where a secret could get to, so that whoever searches knows that he can find.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import time
import traceback
import urllib.request
from pathlib import Path
from typing import Any

import cloudpickle
import psutil
from kazoo.client import KazooClient

from stormline import BaseBatchBolt, Config, Fields, LocalCluster, StormlineError, resolve_secret
from stormline.topology.compiler import compile_topology
from stormline.topology.secrets import resolve_secret as read
from tests.kits.components import Store, line, numbers

PLANTED = "planted-7f3a1c"
FAIL_AT = 12


class LogsIn(BaseBatchBolt):
    """Reads a secret where it needs one, and lets it slip into an exception."""

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: Any) -> None:
        self.collector, self.attempt = collector, batch_id
        self.password = resolve_secret(conf["my.password"])
        logging.getLogger("stormline").warning("%s logs in with %s", PLANTED, self.password)

    def execute(self, tup: Any) -> None:
        if tup[1] == FAIL_AT:
            raise RuntimeError(f"cannot log in with {self.password} ({PLANTED})") from KeyError(self.password)
        self.collector.emit([self.attempt, tup[1]])

    def finish_batch(self) -> None: ...

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("tx", "value"))


def main(directory: Path) -> None:
    logging.basicConfig(filename=directory / "log", level=logging.DEBUG)
    seen = {name: directory / name for name in ("ui", "znodes", "ps", "traceback", "closure", "repr")}
    topology = line(
        "canary",
        numbers(14, 1),
        2,
        lambda b: b.set_bolt(PLANTED, LogsIn()).shuffle_grouping("spout"),
        lambda b: b.set_bolt("store", Store("canary")).shuffle_grouping(PLANTED),
    )
    config = Config({
        "storm.zookeeper.auth.scheme": "digest",
        "storm.zookeeper.auth.payload": f"file:{directory / 'payload'}",
        "my.password": "env:CANARY_PASSWORD",
        "my.note": PLANTED,
        "topology.debug": True,
        "topology.max.spout.pending": 1,
    })  # fmt: skip
    plan = compile_topology(topology, config)
    seen["closure"].write_bytes(cloudpickle.dumps(plan))
    seen["repr"].write_text(f"{config!r} {plan!r}")
    conf = {
        "spark.ui.enabled": "true",
        "spark.ui.port": "0",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (directory / "events").as_uri(),
        "spark.eventLog.compress": "false",
        "spark.my.note": PLANTED,
    }
    with LocalCluster(master="local[2]", conf=conf, verbose=True) as cluster:
        handle = cluster.submit_topology("canary", config, topology)
        _keep_visible(cluster, handle, seen)
        try:
            handle.await_drained(timeout_secs=60)
        except StormlineError as error:
            seen["traceback"].write_text("".join(traceback.format_exception(error)))
        _keep_visible(cluster, handle, seen)


def _keep_visible(cluster: Any, handle: Any, seen: dict[str, Path]) -> None:
    sc = cluster._sc
    time.sleep(0.5)
    api = f"{sc.uiWebUrl}/api/v1/applications/{sc.applicationId}"
    with seen["ui"].open("ab") as file:
        pages = [f"{api}/{page}" for page in ("environment", "jobs", "stages", "executors")]
        for page in [*pages, f"{sc.uiWebUrl}/environment/", f"{sc.uiWebUrl}/jobs/"]:
            with contextlib.suppress(OSError), urllib.request.urlopen(page, timeout=10) as answer:
                file.write(answer.read())
    with seen["ps"].open("a") as file:
        for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
            with contextlib.suppress(psutil.Error):
                file.write(" ".join(process.cmdline()) + "\n")
    with seen["znodes"].open("ab") as file:
        payload = read(f"file:{seen['ui'].parent / 'payload'}")
        silent = logging.Logger("silent", logging.CRITICAL + 1)  # noqa: LOG001 - it would log the payload
        client = KazooClient(cluster._zookeeper.hosts, auth_data=[("digest", payload)], logger=silent)
        client.start()
        _dump(client, "/transactional", file)
        client.stop()
        client.close()


def _dump(client: Any, path: str, file: Any) -> None:
    file.write(path.encode() + client.get(path)[0] + repr(client.get_acls(path)[0]).encode())
    for name in client.get_children(path):
        with contextlib.suppress(Exception):  # a node that went away meanwhile
            _dump(client, f"{path}/{name}", file)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
