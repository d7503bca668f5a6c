"""``python -m isotrace`` is the command ``isotrace``."""

import sys

from isotrace.cli import main

sys.exit(main())
