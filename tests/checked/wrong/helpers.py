"""A module of the user's that bolts call."""

SEEN = set()
LATEST = None
_counts = {}


def count_word(word):
    _counts[word] = _counts.get(word, 0) + 1  # ! static-state


def remember(word):
    global LATEST
    LATEST = word  # ! static-state


class Tally:
    def __init__(self):
        self.words = 0
        self.by_word = {}

    def add(self, word):
        self.words += 1  # ! static-state
        self.by_word[word] = self.words  # ! static-state
