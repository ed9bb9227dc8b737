"""A library as it is installed somewhere else: what it holds by name belongs to the process, and is not to be copied.

Its objects can be pickled: nothing warns who copies one.
"""


class Database:
    """Keeps the numbers of each transaction and task."""

    def __init__(self):
        self.stored = {}

    def add(self, txid, task, numbers):
        """Store once."""
        self.stored.setdefault((txid, task), list(numbers))

    def numbers(self):
        """Return all numbers."""
        return sorted(number for numbers in self.stored.values() for number in numbers)


_registered = {}


def get(name):
    """Return the database of a name, made when it is first asked for."""
    return _registered.setdefault(name, Database())


def forget():
    """Forget all databases."""
    _registered.clear()
