"""The licence rules of `scripts/check_dependencies.py`."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))

from check_dependencies import allowed  # noqa: E402

LICENCES = {"MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception"}


@pytest.mark.parametrize(
    ("expression", "fits"),
    [
        ("MIT", True),
        ("GPL-3.0", False),
        ("GPL-3.0 OR MIT", True),
        ("GPL-3.0/MIT", True),
        ("MIT AND GPL-3.0", False),
        ("(GPL-3.0 OR MIT) AND Apache-2.0", True),
        ("MIT AND (GPL-3.0 OR LGPL-2.1)", False),
        ("Apache-2.0 WITH LLVM-exception", True),
        ("MIT WITH LLVM-exception", False),
    ],
)
def test_an_expression_is_met_only_by_allowed_licences(expression, fits):
    assert allowed(expression, LICENCES) is fits
