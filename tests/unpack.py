"""Archives of the tests."""

import tarfile


def unpack(path, folder):
    """Extracts a .tar archive, also before Python 3.11.4, without filters."""
    with tarfile.open(path) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(folder)
