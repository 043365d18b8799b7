"""The house rules: who may import whom, and what loads when."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import xlamem

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "xlamem"


def modules_after(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print('\\n'.join(sys.modules))"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    return set(done.stdout.split())


def test_reading_and_explaining_a_log_loads_neither_jax_nor_numpy_nor_pandas() -> None:
    loaded = modules_after(
        "import io, contextlib\n"
        "from xlamem.commands import main\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
        "    main(['explain', 'fixtures/logs/unet_kernel_v2.log'])\n"
    )
    assert "xlamem.readers.tpu_oom" in loaded
    assert not loaded & {"jax", "jaxlib", "numpy", "pandas", "google.protobuf"}


def test_importing_the_package_loads_nothing_else() -> None:
    loaded = {m for m in modules_after("import xlamem") if m.startswith("xlamem")}
    assert loaded == {"xlamem"}


@pytest.mark.parametrize("name", xlamem.__all__)
def test_every_public_name_loads_and_is_documented(name: str) -> None:
    assert getattr(xlamem, name).__doc__


def imported_by(path: Path) -> set[str]:
    """Rooms and packages that a module imports when it is loaded."""
    found: set[str] = set()
    tree = ast.parse(path.read_text())
    for node in tree.body:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


ALLOWED = {
    # What a dump only implies, its peak and its owners, is worked out where it is read.
    "readers": {
        "readers",
        "analysis",
        "circumstances",
        "lazy",
        "report",
        "shape",
        "units",
        "errors",
        "targets",
    },
    "analysis": {"analysis", "lazy", "report", "finding", "shape", "units", "errors", "targets"},
    "advice": {
        "advice",
        "analysis",
        "circumstances",
        "report",
        "finding",
        "shape",
        "layouts",
        "units",
        "errors",
        "targets",
    },
    "targets": {"errors", "units"},
}


@pytest.mark.parametrize("room", ALLOWED)
def test_a_room_imports_only_the_rooms_below_it(room: str) -> None:
    for path in (PACKAGE / room).glob("*.py"):
        for name in imported_by(path):
            if name.startswith("xlamem."):
                assert name.split(".")[1] in ALLOWED[room], f"{path.name} imports {name}"
            assert name.split(".")[0] not in {"jax", "jaxlib", "numpy", "pandas"}, path.name


def test_the_foundation_imports_only_itself() -> None:
    for name in (
        "units",
        "errors",
        "shape",
        "tiling",
        "element_types",
        "shape_grammar",
        "report",
        "finding",
        "circumstances",
    ):
        for imported in imported_by(PACKAGE / f"{name}.py"):
            if imported.startswith("xlamem."):
                assert imported.split(".")[1] in {
                    "units",
                    "errors",
                    "shape",
                    "tiling",
                    "element_types",
                    "shape_grammar",
                    "report",
                }, f"{name} imports {imported}"
