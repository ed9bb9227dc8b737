"""What Storm's own executors keep for each partition, in a dict: a value for each txid, the old ones forgotten."""


class RotatingMap:
    def __init__(self):
        self.values = {}

    def get_or_create(self, txid, init):
        """Return the value of `txid`, and whether it was there; else `init(last value)` gives it.

        A txid that was left out while a later one got its value has None for ever: its rows went into the later one.
        """
        existed = txid in self.values
        if not existed:
            left_out = bool(self.values) and txid < max(self.values)
            self.values[txid] = None if left_out else init(self.last())
        return self.values[txid], existed or self.values[txid] is None

    def last(self):
        return self.values[max(self.values)] if self.values else None

    def remove(self, txid):
        self.values.pop(txid, None)

    def override(self, txid, value):
        self.values[txid] = value

    def cleanup_before(self, txid):
        for old in [old for old in self.values if old < txid]:
            del self.values[old]
