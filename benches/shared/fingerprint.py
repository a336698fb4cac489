"""What two engines must agree on before their figures count: a fingerprint of rows in any order.

Each column has a sum; `rows` is their number; `mixed` is a sum over a hash of whole rows, so values that
stand in a wrong row are noticed. Strings count in whatever Arrow layout they come.
"""

import numpy as np
import pyarrow as pa

FIRST_FACTOR = 0x9E37_79B9_7F4A_7C15
SECOND_FACTOR = np.uint64(0xBF58_476D_1CE4_E5B9)


class Fingerprint:
    """Takes record batches one at a time."""

    def __init__(self):
        self.rows = 0
        self.sums = {}
        self.mixed = 0

    def add(self, batch):
        self.rows += batch.num_rows
        mixed = np.zeros(batch.num_rows, np.uint64)
        for place, (name, column) in enumerate(zip(batch.schema.names, batch.columns)):
            numbers = _numbers(name, column)
            self.sums[name] = self.sums.get(name, 0) + int(numbers.sum())
            factor = np.uint64((FIRST_FACTOR * (2 * place + 1)) & 0xFFFF_FFFF_FFFF_FFFF)
            mixed = (mixed ^ (mixed >> np.uint64(29))) * SECOND_FACTOR + numbers.view(np.uint64) * factor
        mixed ^= mixed >> np.uint64(32)
        self.mixed = (self.mixed + int(mixed.sum(dtype=np.uint64))) & 0xFFFF_FFFF_FFFF_FFFF

    def result(self):
        """As plain JSON."""
        return {"rows": self.rows, "sums": self.sums, "mixed": f"{self.mixed:016x}"}


def of_batches(batches):
    fingerprint = Fingerprint()
    for batch in batches:
        fingerprint.add(batch)
    return fingerprint.result()


def _numbers(name, column):
    """One 64-bit number a value."""
    if column.null_count:
        raise ValueError(f"column {name}: {column.null_count} nulls where the table has none")
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _numbers(name, column.dictionary_decode())
    if pa.types.is_integer(kind):
        return column.to_numpy().astype(np.int64)
    if pa.types.is_date32(kind):
        return column.view(pa.int32()).to_numpy().astype(np.int64)
    if kind == pa.decimal128(12, 2):
        words = np.frombuffer(column.buffers()[1], "<i8").reshape(-1, 2)
        return np.ascontiguousarray(words[column.offset : column.offset + len(column), 0])
    if pa.types.is_string_view(kind) or pa.types.is_large_string(kind):
        column, kind = column.cast(pa.string()), pa.string()
    if kind == pa.string():
        return _text(column)
    raise TypeError(f"column {name} came as {kind}")


def _text(column):
    """Of each string the sum of its bytes, each weighted by its place from the end, and its length."""
    if not len(column):
        return np.zeros(0, np.int64)
    _, offsets, data = column.buffers()
    offsets = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1].astype(np.int64)
    content = np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]].astype(np.int64) if data else np.zeros(0, np.int64)
    lengths = np.diff(offsets)
    from_end = np.repeat(offsets[1:] - offsets[0], lengths) - np.arange(len(content))
    running = np.concatenate([[0], np.cumsum(content * from_end)])
    starts = offsets - offsets[0]
    return running[starts[1:]] - running[starts[:-1]] + (lengths << 24)
