"""Committers that hold what must not be copied, or cannot be: one class each, and what must have come of it.

Each gathers numbers and stores them once a transaction; `ALL_HOLDING` has them all.
"""

from tests.holding.databases import DATABASES
from tests.holding.files import FILES
from tests.holding.identities import IDENTITIES
from tests.holding.processes import PROCESSES
from tests.holding.statics import STATICS
from tests.holding.threads import THREADS

ALL_HOLDING = [*DATABASES, *FILES, *IDENTITIES, *PROCESSES, *STATICS, *THREADS]
