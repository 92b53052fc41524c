"""What is wrong with a config: a complaint names the JSON path, the fault and the cure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Complaint:
    """One thing wrong with a config: where in the JSON, what and why, and what to do about it."""

    json_path: str  # "$.text_config.layer_types[3]"
    message: str
    fix: str


class Refused(Exception):
    """Reading on is pointless; carries the complaints found so far."""

    def __init__(self, *complaints: Complaint) -> None:
        self.complaints = complaints
        super().__init__("\n".join(f"{c.json_path} {c.message}" for c in complaints))
