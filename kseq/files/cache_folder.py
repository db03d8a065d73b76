"""Where copies of files from elsewhere are kept."""

import os
from pathlib import Path


def cache_folder():
    """`kseq` in XDG_CACHE_HOME, by default in `~/.cache`: an absolute path."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(cache, "kseq").absolute()
