"""An emulator of StarRocks' Stream Load transactions over HTTP, and the tests that it and a real server must pass.

No StarRocks server can be had from the registries that the tests use. So this is a program of its own, with a front end
and a back end on ports of their own (`python -m tests.starrocks`), written from what is documented. In the code a rule
is followed by the tag of its source:

| tag | source |
|---|---|
| [txn] | docs.starrocks.io/docs/loading/Stream_Load_transaction_interface/ |
| [load] | docs.starrocks.io/docs/sql-reference/sql-statements/loading_unloading/STREAM_LOAD/ |
| [http] | docs.starrocks.io/docs/administration/http_interface |
| [sql] | docs.starrocks.io/docs/sql-reference/http_sql_api |
| [proc] | docs.starrocks.io/docs/sql-reference/sql-statements/cluster-management/nodes_processes/SHOW_PROC/ |
| [conf] | docs.starrocks.io/docs/administration/management/FE_configuration/ |
| [fe] | github.com/StarRocks/starrocks, fe-core: http/rest (TransactionLoadAction, …), DatabaseTransactionMgr |
| [be] | the same, be: transaction_stream_load.cpp, transaction_mgr.cpp, stream_load_context.cpp |
| [SR n] | github.com/StarRocks/starrocks/issues/n |

Where the documentation's examples and the server's source differ, the comment says which was taken. Two differences
matter to clients: the documentation answers a load with numbers of rows, which the source counts only when it prepares;
and it writes `"Status": "FAILED", "Message": "TXN_NOT_EXISTS"` where the source has `"Status": "TXN_NOT_EXISTS"`.
"""
