"""Run the emulator: `python -m tests.starrocks --table 'shop.orders=order_id bigint not null,item varchar(50)'`."""

from __future__ import annotations

import argparse
import os
import signal
import threading

from tests.starrocks.cluster import Cluster
from tests.starrocks.control import ControlHandler
from tests.starrocks.servers import Server, Servers

LOOK_SECS = 0.5


def main() -> None:
    """Serve until SIGINT or SIGTERM; nothing is kept."""
    parser = argparse.ArgumentParser(prog="python -m tests.starrocks", description=__doc__)
    parser.add_argument("--front-port", type=int, default=8030, help="of the front end; 0: any (default: 8030)")
    parser.add_argument("--back-port", type=int, default=8040, help="of the back end; 0: any (default: 8040)")
    parser.add_argument("--control-port", type=int, default=0, help="sets clock and faults; 0: any (default)")
    parser.add_argument("--user", default="root", help="who may do everything (default: root, as StarRocks has it)")
    parser.add_argument("--password-env", default="", help="the variable that has its password (default: it has none)")
    parser.add_argument("--table", action="append", default=[], help="DATABASE.TABLE=COLUMNS, COLUMNS as in SQL")
    parser.add_argument("--key", action="append", default=[], help="DATABASE.TABLE=COLUMNS: its primary key")
    parser.add_argument("--end-with-parent", action="store_true", help="end when the process that started it is gone")
    given = parser.parse_args()
    parent = os.getppid()
    password = os.environ[given.password_env] if given.password_env else ""
    tables = dict(table.split("=", 1) for table in given.table)
    keys = dict(key.split("=", 1) for key in given.key)
    cluster = Cluster({given.user: password}, databases=sorted({name.partition(".")[0] for name in tables} or {"shop"}))
    for name, columns in tables.items():
        database, _, table = name.partition(".")
        cluster.create_table(database, table, columns, tuple(filter(None, keys.get(name, "").split(","))))
    servers = Servers(cluster, given.front_port, (given.back_port,))
    control = Server(("127.0.0.1", given.control_port), type("Control", (ControlHandler,), {"servers": servers}))
    threading.Thread(target=control.serve_forever, daemon=True).start()
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    print(
        f"front end http://{servers.front_address}, back end http://{servers.back_addresses[0]}, "
        f"control http://127.0.0.1:{control.server_port}",
        flush=True,
    )
    while not ended.wait(LOOK_SECS) and not (given.end_with_parent and os.getppid() != parent):
        pass
    servers.close()
    control.shutdown()


if __name__ == "__main__":
    main()
