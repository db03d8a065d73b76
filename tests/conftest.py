"""Keras is imported where tests run, not where they are handed to workers."""

import os


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
