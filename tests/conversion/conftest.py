import tarfile
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def marian(tmp_path_factory):
    """What `tests.conversion.marian_oracle` has written."""
    folder = tmp_path_factory.mktemp("marian")
    with tarfile.open(Path(__file__).with_name("marian.tar.xz")) as archive:
        archive.extractall(folder, filter="data")
    return folder
