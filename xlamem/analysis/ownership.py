"""Who owns the bytes: the kind of thing each value is to the user, and how sure that is.

* Arguments, outputs and constants are known from the buffer assignment. Which argument is a parameter, which
  optimizer state and which the batch is told by the name in the program: by name, then.
* A temporary of the forward pass that the backward pass still needs is a saved activation. Its op_name has
  ``jvp(`` outside ``transpose(``, and something with ``transpose(`` runs before its last use.
* Copies that only change a layout, and what the compiler computes a second time (``.remat``), are told by
  instruction. The rest of the temporaries is workspace.

There is no class "gradients": metadata alone does not tell them (a shape that matches a parameter's would).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from xlamem.finding import Node
from xlamem.report import Allocation

#: Every owner there is, and how it is known: "exact" from the buffer assignment, "instruction" from what the
#: instruction is, "trace" from op_names and live ranges, "name" from the user's names.
OWNERS = {
    "parameters": "name",
    "optimizer state": "name",
    "batch": "name",
    "arguments": "exact",
    "outputs": "exact",
    "constants": "exact",
    "saved activations": "trace",
    "layout copies": "instruction",
    "rematerialized": "instruction",
    "workspace": "exact",
}

_OPTIMIZER = re.compile(
    r"opt(?:im\w*)?(?:_?state\w*)?|mu|nu|m|v|moment\w*|momentum\w*|velocity|adam\w*|trace", re.I
)
_PARAMETERS = re.compile(
    r"\w*(?:params?|parameters?|weights?|ws|vars|variables?|kernel|embedding)\w*|model|w|b", re.I
)
_BATCH = re.compile(
    r"\w*(?:batch|inputs?|labels?|targets?|tokens?|images?|mask|data|segment_ids|positions?)\w*|xs?|ys?|rng|key",
    re.I,
)
_WORD = re.compile(r"[A-Za-z_]\w*")
_REMAT = re.compile(r"\.remat\d*(?:\.|$)|remat_uncompressed|remat_compressed")


def argument_role(name: str | None) -> str:
    """Which argument a name such as ``state.params['layer0']['w']`` stands for, judged from its words.

    Optimizers copy the parameters' own tree, so their words win wherever they stand; then the outermost word
    that says something. "arguments" where no word does.
    """
    words = _WORD.findall(name or "")
    if any(_OPTIMIZER.fullmatch(word) for word in words[:-1]):
        return "optimizer state"
    for word in words:
        if _BATCH.fullmatch(word):
            return "batch"
        if _PARAMETERS.fullmatch(word):
            return "parameters"
    return "arguments"


def backward_steps(op_names: Iterable[str | None]) -> list[int]:
    """The positions of the program that belong to a backward pass, ascending."""
    op_names = list(op_names)
    backward = {name for name in set(op_names) if name is not None and "transpose(" in name}
    return [at for at, name in enumerate(op_names) if name in backward]


def is_forward(op_name: str | None) -> bool:
    """Whether a name is of the forward pass of something that is differentiated."""
    return op_name is not None and "jvp(" in op_name and "transpose(" not in op_name


def temp_owner(
    name: str,
    op_name: str | None,
    span: tuple[int, int] | None,
    backward: list[int],
    is_layout_copy: bool,
) -> str:
    """Whose a temporary value is. ``span`` is the time its memory is needed, ``backward`` as above."""
    if "remat" in name and _REMAT.search(name):
        return "rematerialized"
    if is_layout_copy:
        return "layout copies"
    if is_forward(op_name) and span is not None:
        after = bisect_right(backward, span[0])
        if after < len(backward) and backward[after] <= span[1]:
            return "saved activations"
    return "workspace"


def by_owner(rows: Sequence[Allocation], space: str) -> Node:
    """``rows`` alive at a peak by owner, then by the user's names: paths of arguments, scopes of the rest."""
    return _tree(rows, space, lambda a: (a.owner or a.kind, *_path(a)))


def by_scope(rows: Sequence[Allocation], space: str) -> Node:
    """The same by op_name: ``jit(step)``, ``jvp(Block_0)``, ``dot_general``."""
    return _tree(rows, space, lambda a: _path(a) or ("(no name)",))


def by_source(rows: Sequence[Allocation], space: str) -> Node:
    """The same by source file and line."""
    return _tree(
        rows,
        space,
        lambda a: ("(no source)",) if a.source_file is None else (a.source_file, f"line {a.source_line}"),
    )


_ARGUMENT_PART = re.compile(r"\[[^\]]*\]|\.?[^.\[]+")


def _path(a: Allocation) -> tuple[str, ...]:
    if a.op_name is None:
        return ()
    if a.kind in ("argument", "alias"):
        return _arguments(a.op_name)
    return _scopes(a.op_name)


@lru_cache(maxsize=4096)
def _arguments(name: str) -> tuple[str, ...]:
    return tuple(_ARGUMENT_PART.findall(name))


@lru_cache(maxsize=4096)
def _scopes(op_name: str) -> tuple[str, ...]:
    """An op_name split at slashes, but not inside brackets: ``jvp(a/b)`` is one scope."""
    parts, depth, start = [], 0, 0
    for i, char in enumerate(op_name):
        depth += (char in "([{") - (char in ")]}")
        if char == "/" and depth <= 0:
            parts.append(op_name[start:i])
            start = i + 1
    parts.append(op_name[start:])
    return tuple(part for part in parts if part)


def _tree(rows: Sequence[Allocation], space: str, path: Callable[[Allocation], tuple[str, ...]]) -> Node:
    return _node(space, [(path(a), int(a.bytes), a.padding_bytes or 0) for a in rows], 0)


def _node(name: str, rows: list[tuple[tuple[str, ...], int, int]], depth: int) -> Node:
    groups: dict[str, list[tuple[tuple[str, ...], int, int]]] = {}
    size = padding = 0
    for row in rows:
        path, own, unused = row
        size += own
        padding += unused
        if len(path) > depth:
            part = path[depth]
            if part in groups:
                groups[part].append(row)
            else:
                groups[part] = [row]
    children = [_node(part, group, depth + 1) for part, group in groups.items()]
    children.sort(key=lambda node: -node.bytes)
    return Node(name, size, padding, tuple(children), OWNERS.get(name) if depth == 1 else None)
