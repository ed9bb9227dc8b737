"""Real faults: a cluster of real services on loopback, broken by seed, and a checker that trusts none of it."""
