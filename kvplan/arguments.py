"""What the command line accepts: experiment files and catalog names, and their completion."""

from __future__ import annotations

import glob
from collections.abc import Iterable
from pathlib import Path

import click
from click.shell_completion import CompletionItem

# The lists of `kvplan list`, and the `uses` key whose catalog shelf each one shows.
CATALOG_LISTS = {
    "models": "model",
    "accelerators": "accelerator",
    "tiers": "tier",
    "workloads": "workload",
    "dtypes": "kv_dtype",
}
LISTS = (*CATALOG_LISTS, "formulas", "functions", "experiments")


class ExperimentFile(click.Path):
    """A path that completes to the experiments of the project first."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Experiments, then YAML files beside what was typed; else whatever the shell offers."""
        typed = glob.glob(f"{glob.escape(incomplete)}*.yaml")
        found = dict.fromkeys(sorted(glob.glob("experiments/*.yaml")) + sorted(typed))
        items = [CompletionItem(path) for path in found if path.startswith(incomplete)]
        return items or super().shell_complete(ctx, param, incomplete)


def entry_names(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The names that `kvplan list WHAT NAME` can show."""
    from kvplan.listing import listing

    records = listing(ctx.params.get("what") or "formulas").records
    return [CompletionItem(r["name"]) for r in records if r["name"].startswith(incomplete)]


def found_files(paths: Iterable[Path]) -> tuple[Path, ...]:
    """The files meant, each once; a pattern that the shell left as it is, is looked up here."""
    found: dict[Path, None] = {}
    for path in paths:
        if path.exists() or not glob.has_magic(str(path)):
            found[path] = None
            continue
        matching = sorted(glob.glob(str(path)))
        if not matching:
            raise _nothing(path)
        found.update(dict.fromkeys(Path(name) for name in matching))
    return tuple(found)


def _nothing(pattern: Path) -> Exception:
    from kvplan.errors import KvplanError, Place, Problem

    folder = pattern.parent
    why = (
        f"the folder {folder.as_posix()}/ has no such file"
        if folder.is_dir()
        else f"there is no folder {folder.as_posix()}/ here"
    )
    fix = "change to the project's folder, or start one: kvplan new NAME"
    return KvplanError(Problem("no file matches", why, fix, Place(pattern.as_posix())))
