"""Each report and golden is the old or the new one, whole: killed, disk full, or two at once."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import EXPERIMENT

from kvplan import files, pipeline
from kvplan.errors import KvplanError
from kvplan.golden import read_golden

ROOT = Path(__file__).parent.parent


def kvplan(project: Path, *words: str, code: str = "") -> subprocess.Popen[str]:
    """kvplan in a process of its own, after some lines of Python that tamper with it."""
    program = f"{code}\nimport sys\nfrom kvplan.cli import main\nsys.argv[0] = 'kvplan'\nmain()"
    return subprocess.Popen(
        [sys.executable, "-c", program, *words],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(ROOT), "CI": ""},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_killed_at_any_moment_leaves_whole_files(project: Path) -> None:
    """After SIGKILL at many moments each report and golden is an old or a new one, whole."""
    file = project / "experiments" / "x.yaml"
    allowed: dict[str, set[str]] = {
        "reports/x.md": set(),
        "reports/x.html": set(),
        "golden/x.json": set(),
    }
    variants = (EXPERIMENT, EXPERIMENT.replace("16 token", "32 token"))
    for text in variants:
        file.write_text(text)
        pipeline.write_reports(file, (), None)
        pipeline.accept(file)
        for name, texts in allowed.items():
            texts.add((project / name).read_text())
    killed = 0
    for moment in range(16):
        file.write_text(variants[moment % 2])
        loop = f"from pathlib import Path\nfrom kvplan import pipeline\nx = Path({str(file)!r})\n"
        loop += "print('ready', flush=True)\nwhile True:\n"
        loop += "    pipeline.write_reports(x, (), None)\n    pipeline.accept(x)\n"
        loop += "    t = x.read_text()\n"
        loop += "    x.write_text(t.replace('16 token', '@').replace('32 token', '16 token')"
        loop += ".replace('@', '32 token'))\n"
        process = subprocess.Popen(
            [sys.executable, "-c", loop],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
        )
        assert process.stdout and process.stdout.readline() == b"ready\n"
        time.sleep(0.0237 * moment % 0.29)
        process.send_signal(signal.SIGKILL)
        killed += process.wait() == -signal.SIGKILL
        process.stdout.close()
        for name, texts in allowed.items():
            assert (project / name).read_text() in texts
    assert killed == 16
    left = [p.name for p in project.rglob("*.tmp")]
    assert all(name.startswith(".") for name in left), "what a kill leaves is hidden"
    file.write_text(variants[0])
    assert pipeline.accept(file)


FULL = """
import errno, os
def full(*a): raise OSError(errno.ENOSPC, "No space left on device")
os.fsync = full
"""


@pytest.mark.parametrize("command", ["render", "accept"])
def test_disk_full_leaves_the_old_file(project: Path, command: str) -> None:
    """No space while writing: exit 2, a message, the old files as they were, no leftovers."""
    file = project / "experiments" / "x.yaml"
    pipeline.write_reports(file, (), None)
    pipeline.accept(file)
    names = ("reports/x.md", "reports/x.html", "golden/x.json")
    before = {name: (project / name).read_bytes() for name in names}
    file.write_text(EXPERIMENT.replace("16 token", "32 token"))
    process = kvplan(project, command, "experiments/x.yaml", code=FULL)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "cannot be written: No space left on device" in stderr
    assert {name: (project / name).read_bytes() for name in names} == before
    assert list(project.rglob("*.tmp")) == []


def test_a_file_size_limit_leaves_the_old_file(project: Path) -> None:
    """A real short write (EFBIG from the kernel) is no half file either."""
    target = project / "reports" / "x.md"
    files.write_whole(target, "old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(KvplanError, match="cannot be written"):
            files.write_whole(target, "new" * 10_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert target.read_text() == "old"
    assert [p.name for p in target.parent.iterdir()] == ["x.md"]


def test_two_at_once_leave_one_of_both(project: Path) -> None:
    """Renders and accepts side by side end well and leave whole files."""
    file = "experiments/x.yaml"
    words = [("render", file), ("render", file), ("accept", file), ("accept", file)]
    for process in [kvplan(project, *w) for w in words]:
        _, stderr = process.communicate(timeout=60)
        assert process.returncode == 0, stderr
    assert pipeline.check(project / file) == []
    assert read_golden(project / "golden" / "x.json", "golden/x.json")
    assert list(project.rglob("*.tmp")) == []
