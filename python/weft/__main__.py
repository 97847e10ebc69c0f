"""``python -m weft``."""

import sys

from weft._command.main import main

if __name__ == "__main__":
    sys.exit(main())
