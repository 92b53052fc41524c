"""An installed copy works from any folder, and every version it needs is pinned."""

from __future__ import annotations

import importlib.util
import os
import re
import site
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from kvplan import __version__

ROOT = Path(__file__).parent.parent
CONSTRAINTS = (ROOT / "constraints.txt").read_text(encoding="utf-8")


def pip(*words: str | Path) -> None:
    """The pip of this environment; what it prints is shown when it fails."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built with the hatchling of this environment, or a fetched one without it."""
    folder = tmp_path_factory.mktemp("wheel")
    here = ["--no-build-isolation"] if importlib.util.find_spec("hatchling") else []
    pip("wheel", "--quiet", "--no-deps", *here, "-w", folder, ROOT)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new venv with the wheel; what kvplan depends on is found in this environment."""
    venv = tmp_path_factory.mktemp("installed") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    pip("--python", venv, "install", "--quiet", "--no-deps", "--no-index", wheel)
    inside = Path(sysconfig.get_path("purelib", "venv", {"base": str(venv), "platbase": str(venv)}))
    # A plain line of a .pth file adds a folder without following its own .pth files, so the
    # copy in this environment (which may be the checkout) stays out of sight.
    folders = [*site.getsitepackages(), sysconfig.get_path("platlib")]
    (inside / "dependencies.pth").write_text("\n".join(dict.fromkeys(folders)), encoding="utf-8")
    return venv


def test_the_wheel_has_templates_and_catalog(wheel: Path) -> None:
    """Every template and every catalog entry of the checkout is in the wheel."""
    names = set(zipfile.ZipFile(wheel).namelist())
    wanted = {f"kvplan/templates/{file.name}" for file in (ROOT / "templates").iterdir()}
    data = [f for f in (ROOT / "kvplan").rglob("*") if f.suffix in (".yaml", ".py", ".json")]
    wanted |= {file.relative_to(ROOT).as_posix() for file in data}
    assert len(data) > 50 and wanted <= names


def test_an_installed_copy_works_in_another_folder(installed: Path, tmp_path: Path) -> None:
    """new, render and list run from an empty folder, on what came with the wheel alone."""
    kvplan = installed / "bin" / "kvplan"
    clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}

    def run(*words: str | Path) -> str:
        done = subprocess.run(words, cwd=tmp_path, env=clean, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    where = run(installed / "bin" / "python", "-c", "import kvplan; print(kvplan.__file__)")
    assert Path(where.strip()).is_relative_to(installed)
    run(kvplan, "new", "x")
    assert run(kvplan, "render", "experiments/x.yaml").split() == ["reports/x.md", "reports/x.html"]
    assert "How many requests fit?" in (tmp_path / "reports/x.md").read_text(encoding="utf-8")
    assert "</html>" in (tmp_path / "reports/x.html").read_text(encoding="utf-8")
    assert "llama-3.1-8b" in run(kvplan, "list", "models")
    assert __version__ in run(kvplan, "--version")


def test_every_dependency_is_pinned() -> None:
    """constraints.txt has a version for everything that `.[dev]` installs here."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    pinned = {
        canonicalize_name(Requirement(line).name)
        for line in CONSTRAINTS.splitlines()
        if line and not line.startswith("#")
    }
    assert _closure(wanted) - pinned == set()


def _closure(lines: list[str]) -> set[str]:
    found: set[str] = set()
    stack = [Requirement(line) for line in lines]
    while stack:
        one = stack.pop()
        name = canonicalize_name(one.name)
        if name in found or (one.marker and not one.marker.evaluate({"extra": ""})):
            continue
        found.add(name)
        try:
            stack += [Requirement(line) for line in metadata.requires(one.name) or ()]
        except metadata.PackageNotFoundError:
            continue
    return found


def test_pins_are_exact_and_name_no_registry() -> None:
    """One line is `name==version`, perhaps for some Pythons only; where from is not said."""
    for line in CONSTRAINTS.splitlines():
        assert re.fullmatch(
            r"#.*|[A-Za-z0-9._-]+==[A-Za-z0-9.]+(; [a-z_]+ [<>=!]+ \"[^\"]+\")?", line
        )
    assert "://" not in CONSTRAINTS and "index" not in CONSTRAINTS
