"""What `emit_batch` is given, checked: record batches whose columns are those of the stream."""

from __future__ import annotations

from typing import Any

from stormline.topology.arrow import pyarrow_for, type_problem
from stormline.topology.errors import ColumnCannotTravel, NotARecordBatch, WrongColumns
from stormline.topology.fields import Fields


class BatchCheck:
    """Checks what one task emits to one stream. Remembers the last schema: most batches have that of the one before."""

    __slots__ = ("_fields", "_known", "_names", "_who")

    def __init__(self, fields: Fields, who: str) -> None:
        self._fields = fields
        self._names = list(fields[1:])
        self._who = who
        self._known: Any = None

    def __call__(self, given: Any) -> list[Any]:
        """Return the record batches of `given`, a record batch or a table, with columns in the order of the fields.

        Raises:
            MissingExtra: pyarrow is not installed.
            NotARecordBatch, WrongColumns, ColumnCannotTravel: what they say.
        """
        pa = pyarrow_for(f"{self._who} emits a record batch: this")
        if isinstance(given, pa.Table):
            batches: list[Any] = given.to_batches()
        elif isinstance(given, pa.RecordBatch):
            batches = [given]
        else:
            raise NotARecordBatch(
                f"{self._who} emits a {type(given).__name__} as batch; expected a pyarrow.RecordBatch with the columns "
                f"{self._names}"
            )
        schema = given.schema
        if self._known is None or not schema.equals(self._known):
            self._check(schema)
            self._known = schema
        if schema.names != self._names:
            batches = [batch.select(self._names) for batch in batches]
        return batches

    def _check(self, schema: Any) -> None:
        if sorted(schema.names) != sorted(self._names):
            first = self._fields[0]
            implied = f"; leave out {first!r}, the attempt is implied" if first in schema.names else ""
            raise WrongColumns(
                f"{self._who} emits a record batch with the columns {schema.names}; expected one for each field after "
                f"the first, {self._names}{implied}"
            )
        for field in schema:
            problem = type_problem(field.type)
            if problem:
                raise ColumnCannotTravel(f"{self._who} emits a record batch, column {field.name!r}: {problem}; cast it")
