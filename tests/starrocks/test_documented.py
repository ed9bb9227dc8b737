"""The documentation's requests and answers, one by one: what the emulator says is what [txn], [load] and [http] say.

Times, numbers of transactions, and texts that the documentation leaves empty are compared by their presence only.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.starrocks.cluster import Cluster
from tests.starrocks.conftest import Emulated
from tests.starrocks.faults import Fault
from tests.starrocks.raw import Raw
from tests.starrocks.servers import Servers

LABEL = "streamload_txn_example1_table1"
EXAMPLE = b"1,Lily,23\n2,Rose,23\n3,Alice,24\n4,Julia,25\n"
HEADERS = {"label": LABEL, "db": "test_db", "table": "table1"}
COUNTS = {
    "NumberTotalRows": 4,
    "NumberLoadedRows": 4,
    "NumberFilteredRows": 0,
    "NumberUnselectedRows": 0,
    "LoadBytes": len(EXAMPLE),
}
TIMES = ("LoadTimeMs", "StreamLoadPutTimeMs", "ReceivedDataTimeMs", "WriteDataTimeMs", "CommitAndPublishTimeMs")


@pytest.fixture
def documented() -> Any:
    """The database of the documentation, for its user jack; asks, and follows the redirect as `--location-trusted`."""
    cluster = Cluster({"jack": "123456"}, databases=["test_db"])
    columns = "id int not null,name varchar(65533),score int not null"
    cluster.create_table("test_db", "table1", columns, key=["id"])
    servers = Servers(cluster)

    def ask(operation: str, body: bytes = b"", **headers: str) -> dict[str, Any]:
        method = "PUT" if operation == "load" else "POST"
        given = {**HEADERS, **({"column_separator": ","} if operation == "load" else {}), **headers}
        address, target = servers.front_address, f"/api/transaction/{operation}"
        answer = Raw.ask(address, f"{method} {target}", given, body, "jack:123456", send=False).answer()
        while "Location" in answer:
            parts = urlsplit(answer["Location"])
            answer = Raw.ask(parts.netloc, f"{method} {parts.path}", given, body, "jack:123456").answer()
        return answer

    ask.cluster, ask.address = cluster, servers.front_address  # type: ignore[attr-defined]
    yield ask
    servers.close()


def _without_times(answer: dict[str, Any], *present: str) -> dict[str, Any]:
    for name in present:
        assert isinstance(answer.pop(name), int), name
    return answer


def test_the_documentations_example_runs_from_begin_to_commit(documented: Any) -> None:
    """Prepare sample data, start, write, pre-commit, commit; and what is answered to a commit once more."""
    begun = _without_times(documented("begin"), "TxnId", "BeginTxnTimeMs")
    assert begun == {"Status": "OK", "Message": "", "Label": LABEL, "code": 200}
    ok = {"Label": LABEL, "Status": "OK", "Message": "", "code": 200}
    loaded = _without_times(documented("load", EXAMPLE), "TxnId", *TIMES[:3])
    assert loaded == {**ok, **COUNTS, "Seq": 0}
    prepared = _without_times(documented("prepare", prepared_timeout="300"), "TxnId", *TIMES)
    assert prepared == {**ok, **COUNTS}
    assert documented.cluster.rows("test_db", "table1") == []
    # Differs: the documentation shows numbers here as well; the front end, which commits what is prepared, has none.
    assert _without_times(documented("commit"), "TxnId") == ok
    assert documented.cluster.rows("test_db", "table1") == [
        (1, "Lily", 23), (2, "Rose", 23), (3, "Alice", 24), (4, "Julia", 25),
    ]  # fmt: skip
    again = _without_times(documented("commit"), "TxnId")
    assert "already commit" in again.pop("Message")  # [txn]: "Transaction already commited"
    assert again == {"Label": LABEL, "Status": "OK", "code": 200}


def test_a_transaction_may_be_committed_without_being_prepared(documented: Any) -> None:
    """Then the back end answers, with all numbers, as [txn] shows."""
    documented("begin")
    documented("load", EXAMPLE)
    committed = _without_times(documented("commit"), "TxnId", *TIMES)
    assert committed == {"Label": LABEL, "Status": "OK", "Message": "", "code": 200, **COUNTS}
    assert len(documented.cluster.rows("test_db", "table1")) == 4


def test_a_label_that_is_in_use_is_refused_in_the_documentations_words(documented: Any) -> None:
    """[txn]: LABEL_ALREADY_EXISTS, RUNNING; and FINISHED once it is committed [fe]."""
    documented("begin")
    taken = {
        "Status": "LABEL_ALREADY_EXISTS",
        "ExistingJobStatus": "RUNNING",
        "Message": f"Label [{LABEL}] has already been used.",
        "code": 200,
    }
    assert documented("begin") == taken
    documented("load", EXAMPLE)
    documented("commit")
    assert documented("begin") == {**taken, "ExistingJobStatus": "FINISHED"}


def test_roll_back_is_answered_as_documented(documented: Any) -> None:
    """OK; and for a label that is none, FAILED."""
    documented("begin")
    assert documented("rollback") == {"Label": LABEL, "Status": "OK", "Message": "", "code": 200}
    again = documented("rollback")
    assert (again["Status"], "already aborted" in again["Message"]) == ("OK", True)
    none = documented("rollback", label="none")
    assert (none["Status"], "No transaction found" in none["Message"]) == ("FAILED", True)


def test_what_is_not_there_or_not_in_that_state_is_an_error_with_http_code_200(documented: Any) -> None:
    """[txn] writes FAILED and TXN_NOT_EXISTS in `Message`; the source has it in `Status`, which is taken here."""
    documented("begin")
    documented("load", EXAMPLE)
    documented("prepare")
    for operation in ("load", "prepare"):
        answer = documented(operation, EXAMPLE if operation == "load" else b"")
        assert (answer["code"], answer["Status"]) == (200, "TXN_NOT_EXISTS")
    assert documented("prepare", label="none")["Status"] == "FAILED"
    assert documented("commit", label="none")["Status"] == "FAILED"


def test_a_publish_that_takes_too_long_is_answered_as_documented(documented: Any) -> None:
    """[txn]: FAILED, "publish timeout"; but it is committed, and becomes visible."""
    documented("begin")
    documented("load", EXAMPLE)
    documented("prepare")
    documented.cluster.publish(False)
    answer = _without_times(documented("commit"), "TxnId", "CommitAndPublishTimeMs")
    assert answer == {"Label": LABEL, "Status": "FAILED", "Message": "publish timeout", "code": 200}
    assert documented.cluster.states("test_db") == {LABEL: "COMMITTED"}
    assert documented.cluster.rows("test_db", "table1") == []
    documented.cluster.publish(True)
    assert documented.cluster.states("test_db") == {LABEL: "VISIBLE"}
    assert len(documented.cluster.rows("test_db", "table1")) == 4


def test_the_documentations_pages_of_the_front_end_answer(documented: Any) -> None:
    """[http]: get_load_state, _cancel, health, and 404 for what is no page; [sql]: rows as JSON, a line each."""

    def page(request: str, body: bytes = b"", user: str = "jack:123456") -> dict[str, Any]:
        return Raw.ask(documented.address, request, {}, body, user).answer()

    documented("begin")
    state = page(f"GET /api/test_db/get_load_state?label={LABEL}")
    assert (state["state"], state["status"], state["code"]) == ("PREPARE", "OK", 200)
    assert page(f"POST /api/test_db/table1/_cancel?label={LABEL}")["status"] == "OK"
    state = page(f"GET /api/test_db/get_load_state?label={LABEL}")
    assert (state["state"], state["reason"]) == ("ABORTED", "user cancel")
    again = page(f"POST /api/test_db/table1/_cancel?label={LABEL}")
    assert (again["code"], again["status"], "running transaction not found" in again["msg"]) == (200, "FAILED", True)
    assert page("GET /api/test_db/get_load_state?label=none")["state"] == "UNKNOWN"
    assert page("GET /api/health")["status"] == "OK"
    assert page("GET /api/nothing")["code"] == 404
    assert page("GET /api/health", user="jack:wrong")["code"] == 401


def test_a_separator_that_does_not_print_is_given_in_hexadecimal_digits(documented: Any) -> None:
    """[load]: `\\x0D0A`."""
    documented("begin")
    documented("load", b"1\x01Lily\x0123\r\n", column_separator="\\x01", row_delimiter="\\x0D0A")
    documented("commit")
    assert documented.cluster.rows("test_db", "table1") == [(1, "Lily", 23)]


def test_the_example_of_json_with_an_outer_array_is_two_rows(documented: Any) -> None:
    """[load]: with strip_outer_array; without, it is one record, and none that fits."""
    rows = b'[ {"id" : 1, "score" : 2}, {"id" : 3, "score" : 4} ]'
    documented("begin")
    assert documented("load", rows, format="json", strip_outer_array="true")["NumberLoadedRows"] == 2
    documented("commit")
    assert documented.cluster.rows("test_db", "table1") == [(1, None, 2), (3, None, 4)]
    documented("begin", label="other")
    assert documented("load", rows, label="other", format="json")["NumberFilteredRows"] == 1


def test_a_transaction_of_many_tables_has_no_prepare(emulated: Emulated) -> None:
    """[txn], 4.0: the front end itself begins and commits it; all tables become visible at once."""

    def ask(operation: str, table: str = "", body: bytes = b"") -> dict[str, Any]:
        method, label = "PUT" if operation == "load" else "POST", {"label": "many", "db": "shop"}
        headers = {**label, "transaction_type": "multi", **({"table": table} if table else {})}
        front = emulated.servers.front_address
        answer = Raw.ask(front, f"{method} /api/transaction/{operation}", headers, body, send=False).answer()
        if "Location" in answer:
            parts = urlsplit(answer["Location"])
            answer = Raw.ask(parts.netloc, f"{method} {parts.path}", headers, body).answer()
        return answer

    assert ask("begin")["Status"] == "OK"
    for table in ("stormline_orders", "stormline_clicks"):
        assert ask("load", table, b"r\t1\tpen\t3\n")["Status"] == "OK"
    refused = ask("prepare")
    assert (refused["Status"], "Unsupported operation" in refused["Message"]) == ("FAILED", True)
    assert ask("load", "nowhere")["Status"] == "FAILED"
    assert ask("commit")["Status"] == "OK"
    for table in ("stormline_orders", "stormline_clicks"):
        assert emulated.cluster.rows("shop", table) == [("r", 1, "pen", 3)]
    assert ask("begin")["ExistingJobStatus"] == "FINISHED"


def test_the_program_serves_both_ends_and_obeys_its_control_port() -> None:
    """`python -m tests.starrocks`, as the documentation's reader starts it."""
    table = "test_db.table1=id int not null,name varchar(65533),score int not null"
    command = [sys.executable, "-m", "tests.starrocks", "--front-port", "0", "--back-port", "0", "--table", table]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        front, back, control = (word.rpartition("/")[2] for word in program.stdout.readline().split() if "//" in word)
        front, control = front.rstrip(","), control.rstrip(",")
        begin = "POST /api/transaction/begin"
        assert Raw.ask(front, begin, HEADERS).answer()["Location"] == f"http://{back.rstrip(',')}/api/transaction/begin"
        assert Raw.ask(back.rstrip(","), begin, HEADERS).answer()["Status"] == "OK"
        lost = "POST /fault?operation=rollback&when=before&status=FAILED&message=x"
        assert Raw.ask(control, lost, {}).text() == "done"
        assert Raw.ask(front, "POST /api/transaction/rollback", HEADERS).answer()["Message"] == "x"
        assert Raw.ask(control, "POST /advance?secs=601", {}).text() == "done"
        assert json.loads(Raw.ask(control, "GET /states?database=test_db", {}).text()) == {LABEL: "ABORTED"}
        assert "POST /advance" in Raw.ask(control, "GET /", {}).text()
        program.terminate()
        assert program.wait(60) == 0


def test_a_fault_can_come_later_and_more_than_once(emulated: Emulated) -> None:
    """As data: how many go well before, how often."""
    fault = emulated.cluster.faults.add(Fault("get_load_state", "before", times=2, skip=1, status="FAILED"))
    client = emulated.database().client
    answers = []
    for _ in range(4):
        try:
            answers.append(client.state("none")[0].value)
        except Exception as error:
            answers.append(type(error).__name__)
    assert answers == ["UNKNOWN", "StoreUnavailable", "StoreUnavailable", "UNKNOWN"]
    assert fault.reached.is_set()
    emulated.cluster.faults.clear()
