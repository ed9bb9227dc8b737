"""All that a store in SQL must do: each of them is held to every one of these contracts."""

from __future__ import annotations

from tests.contracts.grouped_commits import GroupedCommitsContract, GroupedSQLContract
from tests.contracts.sql_store import SQLStoreContract
from tests.contracts.store import StoreContract
from tests.contracts.store_fences import StoreFencesContract
from tests.contracts.stored_values import StoredValuesContract
from tests.contracts.unread_puts import UnreadPutsContract, UnreadPutsInSQLContract


class WholeSQLStoreContract(
    StoreContract,
    StoreFencesContract,
    StoredValuesContract,
    SQLStoreContract,
    UnreadPutsContract,
    UnreadPutsInSQLContract,
    GroupedCommitsContract,
    GroupedSQLContract,
):
    """Subclass it, with the fixtures `store` and `sql`."""
