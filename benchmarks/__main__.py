"""``python -m benchmarks`` runs the decoding benchmark."""

import sys

from benchmarks.decoding import main

if __name__ == "__main__":
    sys.exit(main())
