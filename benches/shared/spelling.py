"""How values of several engines are compared: as texts, so that they may differ in type."""

import decimal


def plain(value):
    """One spelling for a number of any type: 12, 12.0 and Decimal('12.00') are equal."""
    if isinstance(value, (int, decimal.Decimal)):
        return f"{decimal.Decimal(value).normalize():f}"
    return str(value)
