"""Deletion vectors in a Puffin file, written by hand from the specifications.

Blob `deletion-vector-v1`: length of magic and vector (4 bytes, big-endian), magic, a 64-bit Roaring bitmap in
the portable format (little-endian), CRC-32 of magic and vector (big-endian). No code of the server is
involved, so an error in one is not repeated in the other.
"""

import json
import struct
import zlib

import numpy as np

VECTOR_MAGIC = bytes.fromhex("d1d33964")
PUFFIN_MAGIC = b"PFA1"
NO_RUNS_COOKIE = 12_346
ARRAY_LIMIT = 4_096  # a container with more values is a bitset
ROW_POSITION_ID = 2_147_483_645


def roaring32(values):
    """A 32-bit Roaring bitmap of strictly ascending values: array and bitset containers, no runs."""
    values = np.asarray(values, np.uint32)
    keys, starts = np.unique(values >> np.uint32(16), return_index=True)
    ends = np.append(starts[1:], len(values))
    low = values.astype(np.uint16)  # the lower 16 bits
    containers = [_container(low[start:end]) for start, end in zip(starts, ends)]

    header = struct.pack("<II", NO_RUNS_COOKIE, len(keys))
    descriptions = np.column_stack([keys, ends - starts - 1]).astype("<u2").tobytes()
    offset = len(header) + len(descriptions) + 4 * len(keys)
    offsets = []
    for container in containers:
        offsets.append(offset)
        offset += len(container)
    return b"".join([header, descriptions, np.array(offsets, "<u4").tobytes(), *containers])


def _container(low):
    if len(low) <= ARRAY_LIMIT:
        return low.astype("<u2").tobytes()
    bits = np.zeros(1 << 16, np.uint8)
    bits[low] = 1
    return np.packbits(bits, bitorder="little").tobytes()


def roaring64(positions):
    """The portable 64-bit form: a count, then each key (upper 32 bits) with its 32-bit bitmap."""
    positions = np.asarray(positions, np.uint64)
    high = positions >> np.uint64(32)
    keys = np.unique(high)
    parts = [struct.pack("<Q", len(keys))]
    for key in keys:
        parts.append(struct.pack("<I", int(key)))
        parts.append(roaring32((positions[high == key] & np.uint64(0xFFFF_FFFF)).astype(np.uint32)))
    return b"".join(parts)


def blob(positions):
    """A `deletion-vector-v1` blob of strictly ascending row positions."""
    content = VECTOR_MAGIC + roaring64(positions)
    return struct.pack(">I", len(content)) + content + struct.pack(">I", zlib.crc32(content))


def write_puffin(path, vectors):
    """Writes one file with a blob for each (data file, positions); returns each blob's (offset, length)."""
    entries, places = [], []
    with open(path, "wb") as out:
        out.write(PUFFIN_MAGIC)
        for data_file, positions in vectors:
            content = blob(positions)
            places.append((out.tell(), len(content)))
            entries.append(
                {
                    "type": "deletion-vector-v1",
                    "fields": [ROW_POSITION_ID],
                    "snapshot-id": -1,
                    "sequence-number": -1,
                    "offset": out.tell(),
                    "length": len(content),
                    "properties": {"referenced-data-file": str(data_file), "cardinality": str(len(positions))},
                }
            )
            out.write(content)
        footer = json.dumps({"blobs": entries, "properties": {"created-by": "benches/full_scan"}}).encode()
        flags = 0  # the footer is not compressed
        out.write(PUFFIN_MAGIC + footer + struct.pack("<iI", len(footer), flags) + PUFFIN_MAGIC)
    return places
