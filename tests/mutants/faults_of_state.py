"""Faults of what is durable, and of who may write it."""

from __future__ import annotations

from tests.mutants.mutant import Killer, Mutant

BATCHES = "runtime/coordination/batch_store.py"
CLAIM = "runtime/zookeeper/claim.py"
STORE = "runtime/zookeeper/store.py"

STATE = (
    Mutant(
        "cleanup-one-too-far",
        "2 sameness",
        "The batch of the last committed transaction is removed with those before it.",
        "runtime/state/rotating_state.py",
        "if old < txid]",
        "if old <= txid]",
    ),
    Mutant(
        "cleanup-compares-for-equality",
        "2 sameness",
        "Equality where order is meant: all batches but the last committed one are removed, also those after it.",
        "runtime/state/rotating_state.py",
        "for old in self.txids() if old < txid]",
        "for old in self.txids() if old != txid]",
    ),
    Mutant(
        "taken-over-compares-for-equality",
        "2 sameness",
        "Equality where order is meant: who takes over knows the last committed batch, and not those after it.",
        BATCHES,
        "for txid in self._state.txids() if txid >= last}",
        "for txid in self._state.txids() if txid == last}",
    ),
    Mutant(
        "never-cleaned-up",
        "bounded",
        "Batches that nobody needs any more stay.",
        BATCHES,
        "self._write([*puts, *cleanup])",
        "self._write(puts)",
    ),
    Mutant(
        "epoch-unchecked",
        "6 fencing",
        "Writes do not check that the owner is as this driver left it.",
        STORE,
        "owner.seal(), version=self._owner_version)",
        "owner.seal(), version=-1)",
        seeds_max=1500,
    ),
    Mutant(
        "unknown-outcome-by-epoch-alone",
        "6 fencing",
        "A write of which no answer came is taken as applied where the owner has this driver's epoch.",
        STORE,
        "if (stored, stat.version) == (owner, next_version(self._owner_version)):",
        "if stored.epoch == owner.epoch:",
    ),
    Mutant(
        "not-written-means-fenced",
        "6 fencing",
        "A write of which no answer came, and that was not applied, is taken as a sign that another driver took over.",
        STORE,
        "if (stored, stat.version) == (self._owner, self._owner_version):",
        "if stored is self._owner:",
    ),
    Mutant(
        "unknown-outcome-means-written",
        "6 fencing",
        "A write of which no answer came is taken as applied.",
        STORE,
        "        except CONNECTION_ERRORS:\n            return self._applied_unanswered(owner, deadline)\n",
        "        except CONNECTION_ERRORS:\n            return True\n",
    ),
    Mutant(
        "writes-side-by-side",
        "6 fencing",
        "Two threads of a driver write at once, with the same version of the owner.",
        STORE,
        "        with self._lock:\n            self._ownership.raise_if_lost()\n            changes",
        "        with self._world.lock():\n            self._ownership.raise_if_lost()\n            changes",
        seeds_max=6000,
    ),
    Mutant(
        "epoch-not-raised",
        "6 fencing",
        "A driver that takes over keeps the epoch of the one before.",
        CLAIM,
        "epoch = stored.owner.epoch + 1 if",
        "epoch = stored.owner.epoch if",
    ),
    Mutant(
        "claims-from-the-living",
        "6 fencing",
        "A driver takes the topology from one that may be alive, without waiting for its session's end.",
        CLAIM,
        "                if alive is None:\n",
        "                if alive is None and wait_until is None:\n",
    ),
    Mutant(
        "claim-outlives-its-driver",
        "6 fencing",
        "The node that says which driver lives does not end with its session.",
        CLAIM,
        "seal(me.to_data(), PLAIN), ephemeral=True)",
        "seal(me.to_data(), PLAIN), ephemeral=False)",
    ),
    Mutant(
        "txid-compared-for-equality",
        "exactly once",
        "Equality where order is meant: a value with another txid beside it is changed, also by a late older one. That "
        "is a fault of user code, in the double of its database; those of the runtime are above.",
        "tests/simulation/databases.py",
        "    if cell.txid < token.txid:\n        cell.value, cell.txid =",
        "    if cell.txid != token.txid:\n        cell.value, cell.txid =",
        seeds_max=3000,
    ),
    Mutant(
        "memory-store-unfenced",
        "6 fencing",
        "The state store in memory lets a driver write that was taken over.",
        "runtime/state/memory_store.py",
        "if topology.live is not self:",
        "if self._lost is not None:",
        killer=Killer.MODEL,
    ),
)
