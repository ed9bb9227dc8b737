"""The version of a znode: how often it was written, which ZooKeeper counts in 32 bits."""

from __future__ import annotations

VERSION_MAX = (1 << 31) - 1


def used_up(version: int) -> bool:
    """Tell whether a znode of this version is to be deleted and made anew, in one transaction, where it is replaced.

    After that many writes (25 days of 1,000 a second) the server's count turns negative, which is harmless until -1:
    a write that expects -1 is compared with nothing, and some servers leave -1 out (ZOOKEEPER-4743; 3.9 does not), so
    that nobody knows what comes after -2. A znode that is made anew has version 0 everywhere. That 2³¹ writes later a
    version comes again fools no fence: who saw it first has had no session for as long.
    """
    return not 0 <= version < VERSION_MAX


def next_version(version: int) -> int:
    """Return the version of a znode after it was replaced, by a write or by a new one."""
    return 0 if used_up(version) else version + 1
