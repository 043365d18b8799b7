"""Answers kept on disk."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from xlamem.compiler import manifest
from xlamem.compiler.cache import Cache, key_of
from xlamem.compiler.recorder import signature
from xlamem.report import MemoryReport, Source

REPORT = MemoryReport("success", "info", Source("a", "compile"), "fits", fits=True)


def test_what_is_put_comes_back(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    assert cache.get("ab" * 32) is None
    cache.put("ab" * 32, REPORT)
    assert cache.get("ab" * 32) == REPORT
    assert cache.usage().entries == 1
    assert cache.clear().entries == 1
    assert cache.get("ab" * 32) is None


def test_the_ones_not_asked_for_longest_go_first(tmp_path: Path) -> None:
    cache = Cache(tmp_path, size=3000)
    for i in range(20):
        cache.put(f"{i:02}" + "x" * 62, os.urandom(500))
        os.utime(tmp_path / f"{i:02}" / ("x" * 62), (i, i))
        if i == 10:
            cache.get("08" + "x" * 62)  # wanted again: it is the newest now
    kept = [i for i in range(20) if cache.get(f"{i:02}" + "x" * 62) is not None]
    assert cache.usage().bytes <= 3000
    assert 8 in kept
    assert 19 in kept
    assert 0 not in kept


@pytest.mark.parametrize("damage", [b"", b"x", zlib.compress(pickle.dumps(subprocess.run))])
def test_a_damaged_or_foreign_entry_is_as_none(tmp_path: Path, damage: bytes) -> None:
    cache = Cache(tmp_path)
    cache.put("ab" * 32, REPORT)
    path = tmp_path / "ab" / ("ab" * 31)
    path.write_bytes(damage)
    assert cache.get("ab" * 32) is None
    assert not path.exists()


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = Cache(tmp_path / "file" / "cache")
    cache.put("ab" * 32, REPORT)
    assert cache.get("ab" * 32) is None
    assert cache.usage().entries == 0


def test_many_processes_can_write_the_same_entry(tmp_path: Path) -> None:
    code = (
        "import sys; from xlamem.compiler.cache import Cache\n"
        "for i in range(50):\n"
        "    cache = Cache(sys.argv[1]); cache.put('ab' * 32, list(range(1000)))\n"
        "    assert cache.get('ab' * 32) == list(range(1000))"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path)]) for _ in range(3)]
    assert [process.wait() for process in running] == [0, 0, 0]
    assert [path.name for path in (tmp_path / "ab").iterdir()] == ["ab" * 31]


def test_the_key_is_of_everything_that_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    first = key_of("program", {"a": 1})
    assert key_of("program", {"a": 1}) == first
    assert key_of("program", {"a": 2}) != first
    monkeypatch.setenv("LIBTPU_INIT_ARGS", "--xla_tpu_scoped_vmem_limit_kib=1024")
    assert key_of("program", {"a": 1}) != first


def test_where_and_how_much_is_in_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLAMEM_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("XLAMEM_CACHE_SIZE", "4G")
    assert (Cache().folder, Cache().size) == (tmp_path, 4 << 30)


def test_a_question_is_answered_until_a_file_or_a_variable_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = Cache(tmp_path / "cache")
    source = tmp_path / "train.py"
    source.write_text("x = 1")
    monkeypatch.delenv("BATCH", raising=False)
    found = signature(str(source))
    assert found is not None
    asked = {"BATCH": None, "XLA_FLAGS": "only the child's", "JAX_PLATFORMS": "cpu"}
    manifest.keep(cache, "ab" * 32, "key", {str(source): found}, asked, {"JAX_PLATFORMS": "cpu"})
    assert manifest.find(cache, "ab" * 32) == "key"
    monkeypatch.setenv("BATCH", "8")
    assert manifest.find(cache, "ab" * 32) is None
    monkeypatch.delenv("BATCH")
    assert manifest.find(cache, "ab" * 32) == "key"
    source.write_text("x = 22")
    assert manifest.find(cache, "ab" * 32) is None
