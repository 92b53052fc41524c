"""Data flows one way: no module imports a later stage."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "kvplan"
FILES = sorted(p for p in PACKAGE.rglob("*.py") if "importer" not in p.parts)
STAGES = ["load", "resolve", "evaluate", "judge", "tables", "explain", "render", "pipeline", "cli"]
# Parts of a stage stand where the stage stands.
PART_OF = {
    "context": "resolve",
    "wishes": "resolve",
    "axes": "resolve",
    "claims": "resolve",
    "binding": "resolve",
    "golden": "judge",
    "prose": "explain",
    "inventory": "render",
    "work": "render",
    "listing": "pipeline",
    "arguments": "cli",
    "calc": "pipeline",
    "sweep": "pipeline",
    "sandbox": "explain",
}


def imported(file: Path) -> set[str]:
    """The kvplan modules a file imports when it runs, without the package's name."""
    found: set[str] = set()
    tree = ast.parse(file.read_text(encoding="utf-8"))
    typing_only = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if node in typing_only:
            continue
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("kvplan"):
            inside = node.module.partition(".")[2]
            found |= {inside} if inside else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {a.name.partition(".")[2] for a in node.names if a.name.startswith("kvplan.")}
    return found


def stage(module: str) -> int | None:
    """How late in the flow a module stands, if it is a stage or part of one."""
    top = module.partition(".")[0]
    name = PART_OF.get(top, top)
    return STAGES.index(name) if name in STAGES else None


@pytest.mark.parametrize("file", FILES, ids=lambda p: p.relative_to(PACKAGE).as_posix())
def test_no_module_imports_a_later_stage(file: Path) -> None:
    """A stage knows those before it; what is no stage knows none; nobody knows cli."""
    own = file.relative_to(PACKAGE).with_suffix("").as_posix().replace("/", ".")
    here = stage(own)
    names = imported(file)
    assert own == "__main__" or "cli" not in names
    if own in ("__main__", "cli", "listing", "starting"):
        return
    for name in sorted(names):
        there = stage(name)
        assert there is None or (here is not None and there <= here), f"{own} imports {name}"


@pytest.mark.parametrize("file", sorted((PACKAGE / "formulas").glob("*.py")), ids=lambda p: p.stem)
def test_formulas_import_only_registry_and_values(file: Path) -> None:
    """A formula is arithmetic on quantities; it reads nothing and knows no stage."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    names = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert not any(isinstance(node, ast.Import) for node in ast.walk(tree))
    assert all(n == "kvplan.registry" or n.startswith("kvplan.values.") for n in names), names


def test_values_know_only_values_and_errors() -> None:
    """The kinds of number stand below everything else."""
    for file in (PACKAGE / "values").glob("*.py"):
        assert all(n == "errors" or n.startswith("values") for n in imported(file)), file.name


def test_the_rules_notice_a_breach(tmp_path: Path) -> None:
    """An import of a later stage, also inside a function, is seen."""
    file = tmp_path / "x.py"
    file.write_text("def f():\n    from kvplan import render\n    import kvplan.judge\n")
    assert imported(file) == {"render", "judge"}
    assert stage("axes") == stage("resolve")
