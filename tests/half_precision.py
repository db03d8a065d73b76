"""Policies of half precision: one in every run, the other before a release."""

import pytest

HALF_POLICIES = [
    pytest.param("mixed_bfloat16", marks=pytest.mark.slow),
    "mixed_float16",
]
