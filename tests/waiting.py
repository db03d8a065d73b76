"""Waiting for what other threads and processes do."""

import time


def wait_for(condition, seconds=20):
    """What a function returns as soon as it is true."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end
        time.sleep(0.005)
    return found
