"""plain_remedy: how a value of numpy or pandas becomes plain Python; by name, since neither need be installed."""

from __future__ import annotations

_LIST = "call .tolist(), or emit whole columns at once, as a record batch, by emit_batch"
_REMEDIES = {
    "numpy.datetime64": "call .astype('datetime64[us]').item(), which is a datetime",
    "numpy.timedelta64": "call .astype('timedelta64[us]').item(), which is a timedelta",
    "numpy.longdouble": "call float() of it",
    "numpy.clongdouble": "call complex() of it",
    "numpy.generic": "call .item()",
    "numpy.ndarray": _LIST,
    "pandas.Timestamp": "call .to_pydatetime()",
    "pandas.Timedelta": "call .to_pytimedelta()",
    "pandas.NaTType": "use None instead",
    "pandas.NAType": "use None instead",
    "pandas.Series": _LIST,
    "pandas.Index": _LIST,
    "pandas.ExtensionArray": _LIST,
    "pandas.DataFrame": (
        "emit a tuple for each of .itertuples(index=False), or the whole by "
        "emit_batch(pyarrow.RecordBatch.from_pandas(frame, preserve_index=False))"
    ),
}


def plain_remedy(kind: type) -> str | None:
    """Return what makes a value of this class plain; None where nothing is known of it."""
    for base in kind.__mro__:
        # pandas 2 has its classes in modules like pandas.core.frame, pandas 3 most of them in pandas.
        remedy = _REMEDIES.get(f"{base.__module__.partition('.')[0]}.{base.__qualname__}")
        if remedy is not None:
            return remedy
    return None
