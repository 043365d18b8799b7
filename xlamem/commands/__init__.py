"""The command line. Each command is a thin module; this one only knows their names."""

from __future__ import annotations

from xlamem.commands.group import LazyGroup

__all__ = ["main"]

_COMMANDS = {
    "explain": "What ran out, who holds it, and what to change.",
    "compile": "What a program takes on any TPU or GPU, by the real compiler, with none here.",
    "diff": "What grew, what is new and what is gone between two of anything readable.",
    "tile": "What a shape takes in TPU memory, and how to make it take less.",
    "targets": "The TPUs and GPUs that are known, and their memory.",
    "cache": "Where answers of compiles are kept, and how much that is.",
}

main = LazyGroup(_COMMANDS)
