"""`python -m kseq` is the command `kseq`."""

import sys

from kseq.cli import main

if __name__ == "__main__":
    sys.exit(main())
