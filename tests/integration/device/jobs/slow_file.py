from __future__ import annotations

import io
import time


class SlowFile(io.BytesIO):
    """A file on a share: closing it takes `close_ms`, whatever was written."""

    def __init__(self, close_ms):
        super().__init__()
        self.close_ms = close_ms

    def flush(self):
        time.sleep(self.close_ms / 1e3)
