"""neural-tangents 0.6.5 (of 2023) on today's jax: imported with the names that it asks for put back while it loads.

Nothing of it is changed. What it looks for and no longer finds:

- ``jax.core``'s Jaxpr, JaxprEqn, Literal, Primitive and Var, which moved to ``jax.extend.core``;
- ``jax.util``, of which it wants ``safe_map`` and ``safe_zip``;
- ``jax.interpreters.ad.zeros_like_p``, which here is only a key of a table, so that a stand-in will do.

And ``neural_tangents.experimental``, the kernels of TensorFlow's functions, wants TensorFlow and tf2jax, two
gigabytes of them. It is left out, so ``pip install --no-deps neural-tangents frozendict`` is enough.

Afterwards jax is as it was. The kernels of ``neural_tangents.stax`` in closed form work with this, and
``neural_tangents.batch``; empirical kernels, which walk jaxprs, miss more that is gone.
"""

import importlib
import sys
from contextlib import ExitStack, contextmanager
from types import ModuleType
from unittest.mock import patch

import jax.core
import jax.extend.core
import jax.interpreters.ad

_MOVED = ("Jaxpr", "JaxprEqn", "Literal", "Primitive", "Var")


@contextmanager
def _module(name, **contents):
    """A module of this name that can be imported meanwhile."""
    module = ModuleType(name)
    vars(module).update(contents)
    sys.modules[name] = module
    try:
        yield
    finally:
        del sys.modules[name]


def _safe_map(function, *lists):
    return [function(*items) for items in zip(*lists, strict=True)]


def _safe_zip(*lists):
    return list(zip(*lists, strict=True))


def load():
    """The module ``neural_tangents``, and its ``stax``."""
    with ExitStack() as meanwhile:
        moved = {name: getattr(jax.extend.core, name) for name in _MOVED}
        zeros_like = jax.extend.core.Primitive("zeros_like")
        meanwhile.enter_context(patch.multiple(jax.core, create=True, **moved))
        meanwhile.enter_context(patch.object(jax.interpreters.ad, "zeros_like_p", zeros_like, create=True))
        meanwhile.enter_context(_module("jax.util", safe_map=_safe_map, safe_zip=_safe_zip))
        meanwhile.enter_context(_module("neural_tangents.experimental"))
        nt = importlib.import_module("neural_tangents")
    return nt, nt.stax
