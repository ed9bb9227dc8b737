"""What a reader must know to read the figures rightly."""

CAVEATS: tuple[str, ...] = (
    "Absolute figures vary from machine to machine and from hour to hour; the ratios less, since both sides of each "
    "pair are measured one right after the other, in alternating order.",
    "Start-up is left out everywhere but in P11: Spark, ZooKeeper, the Python workers and the bare loops' processes "
    "are up, and one unmeasured run of each has gone before; in P3, S1, S2 and T2 8,192 small transactions, in "
    "K1 and K2 four waves, since until then Java compiles. Stormline's time runs from the first is_ready that is "
    "answered true until the last commit is durably recorded, so filling and emptying the pipeline is in it.",
    "The synthetic spout's words are made once a process; each tuple is a list made anew, [attempt, word].",
    "The synthetic spout hands over 1,000 tuples a call (emit_all), so that the engine is what is measured; P1b has an "
    "emit for each tuple, as ported spouts do.",
    "P1, P2: the bare loop has no grouping, no counts to check, no commit and no ZooKeeper; it makes the same list and "
    "Tuple and calls the same bolt's execute. In P2 it does not exchange words between its two processes.",
    "P3: a set is one znode of 100 bytes; a commit is one multi of several operations. The embedded ZooKeeper writes "
    "to disk for both.",
    "P4 to P6: each measurement of a peer is a fresh process whose start-up is not counted; Stormline's idle JVM waits "
    "beside it. How each peer is set up, and what is not equal, is in benchmarks/peers/README.md.",
    "P7: the empty job has as many tasks as Stormline's own job for such a batch.",
    "P8: both sides make their record batches anew, by the same function, and count with the same function. By hand "
    "nothing is exchanged between the two processes. In P8b and P8d every word goes through the fields grouping, as in "
    "P2; in P8e and P8f each task first counts what reaches it, as one writes it by columns.",
    "P9: the JVM's memory rises and falls with its garbage collector; read its slope beside its size.",
    "P10: the worst of all steps from one size to a larger one, by the medians of the rounds.",
    "P11: the bare SparkContext runs without its web UI, as Stormline's does; with it, it would take longer.",
    "S1, S2: by the ready committer, whose map remembers its row. psycopg alone sends value, txid and fence in one "
    "statement, with no engine around it; all servers sync what they commit.",
    "S3, S4: ours is multi_put, which checks each value's type and each row's txid, from the map's opening to the end "
    "of the commit, fence included. The bare driver is given rows that are sorted already, writes into the map's own "
    "table, primary key included, and checks nothing. COPY writes new keys only: S3b is held against it all the same.",
    "S5: Structured Streaming stores a batch's counts and its id in one transaction, all keys in one statement; for "
    "record batches it counts in SQL, so that no tuple reaches its Python.",
    "K1, K2: both read the same topic, of which each process has a partition. The bare loop decodes each value into an "
    "object of five typed fields, as ours does, and makes no tuple of it; into Arrow by a list a column, which was "
    "faster than pyarrow's JSON reader and polars. Nothing that it reads is stored, sent on or committed.",
    "K3: both commit batches of 100,000 records and store counts with the id of the batch in one transaction; the "
    "records' values are not decoded.",
    "K4: one process sends and receives for either side. Structured Streaming may write records twice, ours not.",
    "K5: the bare producer writes nothing but the records; ours writes the ledger's record with them.",
    "T1: both sides make the same numbered rows anew. By hand each process commits its half by itself: a batch is "
    "never visible as a whole, nor in order, and nothing is prepared, recorded, or found again after a crash.",
    "T2: ours prepares on an executor while the driver commits, in order, and records each commit in ZooKeeper.",
    "S6: seconds from SIGKILL to the first new commit that another process sees in SQLite, with Python, the JVM and "
    "Spark to be started anew by both, one right after the other.",
)
