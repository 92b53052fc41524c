"""A progress bar on standard error, for work that a person would otherwise wait for blindly."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import click


class Progress:
    """Prints lines as they come, or after a bar once it is worth a person's while to see one."""

    def __init__(self, total: int, stack: ExitStack) -> None:
        self.total, self.done, self.started = total, 0, time.monotonic()
        self.bar: Any = None
        self.stack = stack
        self.stack.callback(self._print_held)
        self.held: list[Callable[[], None]] = []

    def say(self, action: Callable[[], None]) -> None:
        """Prints now, or when the bar is gone."""
        if self.bar:
            self.held.append(action)
        else:
            action()

    def advance(self) -> None:
        """One more is done; shows the bar when more than a second of work is left."""
        self.done += 1
        if self.bar:
            self.bar.update(1)
            return
        left = (time.monotonic() - self.started) / self.done * (self.total - self.done)
        if left > 1 and sys.stderr.isatty():
            bar: Any = click.progressbar(length=self.total, file=sys.stderr, label="experiments")
            self.bar = self.stack.enter_context(bar)
            self.bar.update(self.done)

    def _print_held(self) -> None:
        for action in self.held:
            action()
