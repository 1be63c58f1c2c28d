"""whyidle: why is my GPU idle?"""

from __future__ import annotations

TYPE_CHECKING = False  # typing's own costs 5 ms of every start
if TYPE_CHECKING:
    from typing import Any

    from whyidle.probes.api import phase, watch

__version__ = "0.1.0"
__all__ = ["__version__", "phase", "watch"]


def __getattr__(name: str) -> Any:
    if name in ("phase", "watch"):
        from whyidle.probes import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
