"""Text to files, whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from kvplan.errors import KvplanError, Place, Problem
from kvplan.yamltext import leads_into


def write_whole(path: Path, text: str, inside: Path | None = None) -> None:
    """Writes beside the file and renames: a reader, a crash or a full disk sees old or new.

    A folder that is a link out of `inside` is not written to; a link in place of the file is
    replaced.
    """
    if inside and not leads_into(path.parent, inside):
        raise KvplanError(
            Problem(
                "the folder is a link that leads out of the project",
                "",
                "remove the link, or choose a folder with -o",
                Place(path.as_posix()),
            )
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    except OSError as error:
        raise KvplanError(_problem(path, error)) from None
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    except BaseException as error:
        Path(name).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise KvplanError(_problem(path, error)) from None
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _problem(path: Path, error: OSError) -> Problem:
    return Problem(
        f"cannot be written: {error.strerror or error}",
        "the file is as it was before",
        "free space, or choose a folder with -o",
        Place(path.as_posix()),
    )
