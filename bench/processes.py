"""Commands in new processes: wall time and peak memory, the best of several runs."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
RUNS = 7


@dataclass(frozen=True)
class Cost:
    """Seconds by the clock and of the processor, and bytes, of one command."""

    seconds: float
    busy: float
    memory: int


# A child's peak memory counts what its parent was when it started it, so a small one starts it.
STARTER = """
import os, sys, time
started = time.perf_counter()
child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, used = os.wait4(child, 0)
seconds = time.perf_counter() - started
busy = used.ru_utime + used.ru_stime
sys.stderr.write(f"\\n{seconds} {busy} {used.ru_maxrss} {os.waitstatus_to_exitcode(status)}")
"""


def cost(words: list[str], runs: int = RUNS) -> Cost:
    """The least time and memory of some runs; stops when the command fails."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    starter = [sys.executable, "-I", "-S", "-c", STARTER, *words]
    best = Cost(float("inf"), float("inf"), sys.maxsize)
    for _ in range(runs):
        done = subprocess.run(
            starter, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        *said, last = done.stderr.decode().splitlines()
        seconds, busy, memory, code = last.split()
        if code != "0":
            raise SystemExit("\n".join([" ".join(words), *said]))
        # Linux counts in KiB, macOS in bytes.
        size = int(memory) * (1 if sys.platform == "darwin" else 1024)
        best = Cost(
            min(best.seconds, float(seconds)),
            min(best.busy, float(busy)),
            min(best.memory, size),
        )
    return best


def process_rows() -> list[list[str]]:
    """Rows of the table: each command beside the bare interpreter."""
    files = sorted(str(file.relative_to(ROOT)) for file in (ROOT / "experiments").glob("*.yaml"))
    kvplan = [sys.executable, "-m", "kvplan"]
    bare = cost([sys.executable, "-c", "pass"])
    with tempfile.TemporaryDirectory() as folder:
        commands = [
            ("kvplan --help", ["--help"], "0.2 s, 80 MB"),
            (
                f"kvplan render, {len(files)} experiments",
                ["render", *files, "-o", folder],
                "1 s, 80 MB",
            ),
            (f"kvplan check, {len(files)} experiments", ["check", *files], "0.8 s, 80 MB"),
        ]
        costs = [(name, cost([*kvplan, *words]), aim) for name, words, aim in commands]
    sweep = ["sweep", "experiments/token_cost.yaml", "kv_per_sequence", "replica_share"]
    sweep += ["--over", "context=1 token..1000000 token"]
    costs.append(("kvplan sweep, 1,000,000 points x 2", cost([*kvplan, *sweep]), ""))
    rows = [["bare interpreter", *_cells(bare, bare), ""]]
    rows += [[name, *_cells(one, bare), aim] for name, one, aim in costs]
    return rows


def _cells(one: Cost, bare: Cost) -> list[str]:
    times, sizes = one.seconds / bare.seconds, one.memory / bare.memory
    memory = f"{one.memory / 1e6:.0f} MB ({sizes:.1f}x)"
    busy = f"{one.busy:.3f} s ({one.busy / bare.busy:.1f}x)"
    return [f"{one.seconds:.3f} s ({times:.1f}x)", busy, memory]
