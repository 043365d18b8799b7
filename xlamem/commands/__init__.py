"""The command line. Each command is a thin module; this one only knows their names."""

from __future__ import annotations

from xlamem.commands.group import LazyGroup

__all__ = ["main"]

_COMMANDS = {
    "explain": "What ran out, who holds it, and what to change.",
    "tile": "What a shape takes in TPU memory, and how to make it take less.",
    "targets": "The TPUs and GPUs that are known, and their memory.",
}

main = LazyGroup(_COMMANDS)
