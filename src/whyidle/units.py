"""The only conversions between units. Records and analysis hold integer nanoseconds and bytes."""

from __future__ import annotations

NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000


def ns_to_s(value_ns: float) -> float:
    return value_ns / NS_PER_S


def ns_to_ms(value_ns: float) -> float:
    return value_ns / NS_PER_MS


def s_to_ns(value_s: float) -> int:
    return round(value_s * NS_PER_S)


def ms_to_ns(value_ms: float) -> int:
    return round(value_ms * NS_PER_MS)
