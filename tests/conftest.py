"""Keras is imported where tests run, not where they are handed to workers."""

import os
import sys

# A worker needs ten seconds to compile all tests: what is compiled is kept,
# whatever the environment says.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_addoption(parser):
    parser.addoption(
        "--new-seeds",
        action="store_true",
        help="draw the seed of every test anew",
    )


def pytest_configure(config):
    hands_tests_out = config.getoption("numprocesses", default=None)
    if "PYTEST_XDIST_WORKER" in os.environ or not hands_tests_out:
        config.pluginmanager.import_plugin("tests.fixtures")
