"""Settings for all tests: property tests draw the same examples everywhere and are never timed."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("whyidle", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("whyidle")
