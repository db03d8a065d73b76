"""Policies of half precision: one in every run, the other before a release."""

from tests.slow import slow

HALF_POLICIES = [slow("mixed_bfloat16"), "mixed_float16"]
