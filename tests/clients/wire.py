"""Flight SQL commands as bytes: just enough protobuf to send what no driver sends."""

PREFIX = "type.googleapis.com/arrow.flight.protocol.sql."


def varint(value):
    out = bytearray()
    while True:
        value, low = value >> 7, value & 0x7F
        out.append(low | (0x80 if value else 0))
        if not value:
            return bytes(out)


def field(number, value):
    """A protobuf field: bytes and text length-delimited, integers and booleans as varints."""
    if isinstance(value, str):
        value = value.encode("utf-8")
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    return varint(number << 3) + varint(int(value))


def command(name, *fields):
    """A message of the Flight SQL package inside `google.protobuf.Any`."""
    return field(1, PREFIX + name) + field(2, b"".join(fields))


def parse(message):
    """Field number to the list of its raw values."""
    out, at = {}, 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        key = number()
        if key & 7 == 2:
            size = number()
            value = message[at : at + size]
            at += size
        elif key & 7 == 0:
            value = number()
        else:
            raise ValueError(f"wire type {key & 7}")
        out.setdefault(key >> 3, []).append(value)
    return out
