"""Which bytes of a Parquet file have a checksum: the data of pages whose header declares one.

Headers of pages, footers and page indexes have none. Page headers are read here as the Thrift compact protocol lays
them out, so that no Parquet library decides.
"""

import pyarrow.parquet as pq

COMPRESSED_SIZE, CRC = 3, 4  # fields of a page header


def checksummed(path):
    """Ranges (start, end) of page data with a checksum, in a file that can be read."""
    data, out = path.read_bytes(), []
    footer = pq.read_metadata(path)
    for group in range(footer.num_row_groups):
        for column in range(footer.row_group(group).num_columns):
            chunk = footer.row_group(group).column(column)
            starts = [chunk.data_page_offset]
            if chunk.has_dictionary_page and chunk.dictionary_page_offset:
                starts.append(chunk.dictionary_page_offset)
            at = min(starts)
            end = at + chunk.total_compressed_size
            while at < end:
                header, body = _struct(data, at)
                size = header[COMPRESSED_SIZE]
                if CRC in header:
                    out.append((body, body + size))
                at = body + size
    return out


def _varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def _zigzag(data, at):
    value, at = _varint(data, at)
    return (value >> 1) ^ -(value & 1), at


def _struct(data, at):
    """(field id to value, where it ends)."""
    fields, number = {}, 0
    while True:
        head = data[at]
        at += 1
        if head == 0:
            return fields, at
        if head >> 4:
            number += head >> 4
        else:
            number, at = _zigzag(data, at)
        kind = head & 15
        if kind in (1, 2):
            fields[number] = kind == 1
        else:
            fields[number], at = _value(data, at, kind)


def _value(data, at, kind):
    if kind in (1, 2, 3):
        return data[at], at + 1
    if kind in (4, 5, 6):
        return _zigzag(data, at)
    if kind == 7:
        return data[at : at + 8], at + 8
    if kind == 8:
        size, at = _varint(data, at)
        return data[at : at + size], at + size
    if kind in (9, 10):
        size, inner = data[at] >> 4, data[at] & 15
        at += 1
        if size == 15:
            size, at = _varint(data, at)
        values = []
        for _ in range(size):
            value, at = _value(data, at, inner)
            values.append(value)
        return values, at
    if kind == 12:
        return _struct(data, at)
    raise ValueError(f"thrift type {kind}")
