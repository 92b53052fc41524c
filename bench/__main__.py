"""Prints one table of what kvplan costs; ratios are of this run, on this machine."""

from __future__ import annotations

from tabulate import tabulate

from bench.inside import growth_rows, sweep_rows
from bench.processes import process_rows


def main() -> None:
    """Measures new processes first, then sweeps and growth inside this one."""
    rows = [*process_rows(), *sweep_rows(), *growth_rows()]
    print(
        tabulate(
            rows, ["what", "time", "processor", "memory, speed or growth", "aim"], tablefmt="pipe"
        )
    )


main()
