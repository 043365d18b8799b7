"""A folder: a dump that XLA wrote, or logs of several runs, hosts or ranks."""

from __future__ import annotations

import os
from collections.abc import Iterator

from xlamem.errors import InputError, NotAReportError, NotReadableError
from xlamem.readers.dump import read_dump
from xlamem.readers.dump_files import scan
from xlamem.readers.input import Progress
from xlamem.report import MemoryReport


def read_folder(path: str, module: str | None = None, progress: Progress | None = None) -> list[MemoryReport]:
    """The reports of a dump, or of every log in the folder and the folders in it, file by file.

    ``progress`` is called with the files read so far and how many there are.

    Raises:
        NotReadableError: the folder cannot be listed.
        NotAReportError: there is no dump and no log with a report in it.
    """
    from pathlib import Path

    if scan(Path(path)):
        return read_dump(path, module)
    from xlamem.readers import read_all

    reports: list[MemoryReport] = []
    names = list(_files(path))
    for count, name in enumerate(names):
        if progress is not None:
            progress(count, len(names))
        try:
            reports.extend(read_all(name))
        except InputError:
            continue  # most files beside logs are something else
    if not reports:
        raise NotAReportError(f"{path}: no dump, and no memory report in any of its {len(names)} files")
    return reports


def _files(path: str) -> Iterator[str]:
    try:
        os.listdir(path)
    except OSError as error:
        raise NotReadableError(f"{path}: cannot be listed: {error.strerror}") from None
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if not name.startswith(".") and os.path.isfile(os.path.join(folder, name)):
                yield os.path.join(folder, name)
