"""``python -m spit.cli`` is ``spit``."""

import sys

from spit.cli import main

sys.exit(main())
