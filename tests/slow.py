"""Cases of parametrized tests that run before a release only."""

import functools

import pytest

slow = functools.partial(pytest.param, marks=pytest.mark.slow)


def others_slow(cases, often):
    """Those of `often` in every run, the others before a release."""
    return [case if case in often else slow(case) for case in cases]
