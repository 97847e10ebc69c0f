"""``python -m weft.bench``."""

import sys

from weft.bench.command import main

if __name__ == "__main__":
    sys.exit(main())
