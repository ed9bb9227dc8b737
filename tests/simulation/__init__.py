"""A simulation of Stormline: the real runner, stage runner, commits and state store, in a world where all else is
made up, and where faults happen by the seed. The same seed gives the same history, to the bit.

    python -m tests.simulation --seeds 1000          many seeds, two processes
    python -m tests.simulation --seed 17             one seed, with its history

`scheduler` is the world's clock and its threads; `stand_ins` makes of them what the code under test is handed in for
the world, and shuts the real one out meanwhile. `zookeeper`, `kazoo_client` with its `kazoo_requests`, `databases`,
`source` and `executors` are the world; `faults` says what goes wrong how often; `oracle` knows what is right;
`simulator` runs one seed.
"""
