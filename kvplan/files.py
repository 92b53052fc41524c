"""Text to files, whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from kvplan.errors import KvplanError, Place, Problem


def write_whole(path: Path, text: str) -> None:
    """Writes beside the file and renames: a reader, a crash or a full disk sees old or new."""
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
