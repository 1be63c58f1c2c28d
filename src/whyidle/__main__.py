"""`python -m whyidle` is `whyidle`."""

from __future__ import annotations

import sys

from whyidle.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
