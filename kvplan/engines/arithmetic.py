"""Whole-number arithmetic that block counts rest on; nothing here passes through a float."""

from __future__ import annotations

from collections.abc import Callable

KIB, MIB, GIB = 2**10, 2**20, 2**30


def ceil_div(amount: int, size: int) -> int:
    """The number of pieces of `size` that hold `amount`."""
    return -(-amount // size)


def round_up(amount: int, step: int) -> int:
    """The least multiple of `step` that is not below `amount`."""
    return ceil_div(amount, step) * step


def round_down(amount: int, step: int) -> int:
    """The greatest multiple of `step` that is not above `amount`."""
    return amount // step * step


def largest(fits: Callable[[int], bool], limit: int) -> int:
    """The largest whole number in 1..limit that fits; 0 when 1 does not.

    `fits` must be true up to some number and false above it.
    """
    if limit < 1 or not fits(1):
        return 0
    if fits(limit):
        return limit
    low, high = 1, limit  # low fits, high does not
    while high - low > 1:
        middle = (low + high) // 2
        if fits(middle):
            low = middle
        else:
            high = middle
    return low
