"""The one exception of the importer: everything that was wrong with a config, each with its place and its cure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Complaint:
    """One thing wrong with a config: where in the JSON, what and why, and what to do about it."""

    json_path: str
    message: str
    fix: str


class UnreadableConfig(Exception):
    """A config.json that cannot be read as a model shape; carries every complaint that was found."""

    def __init__(self, complaints: list[Complaint]) -> None:
        self.complaints = tuple(complaints)
        super().__init__("\n".join(f"{c.json_path}: {c.message}\n  {c.fix}" for c in complaints))


def refuse(json_path: str, message: str, fix: str) -> UnreadableConfig:
    """An exception with a single complaint, for what makes reading on pointless."""
    return UnreadableConfig([Complaint(json_path, message, fix)])
