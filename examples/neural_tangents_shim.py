"""neural-tangents 0.6.5 (of 2023) on today's jax: imported with the names it asks for put back while it loads.

Nothing of it is changed. What it looks for and no longer finds:

- ``jax.core``'s Jaxpr, JaxprEqn, Literal, Primitive, Var moved to ``jax.extend.core``;
- ``jax.util`` is gone; only its ``safe_map`` and ``safe_zip`` are asked for;
- ``jax.interpreters.ad.zeros_like_p`` is gone; it is only a key of a table here, so a stand-in will do;
- ``neural_tangents.experimental`` needs TensorFlow and tf2jax for one more way to write empirical kernels, which
  is not used here: it is left out. So ``pip install --no-deps neural-tangents`` is enough, with frozendict.

Everything is taken back afterwards. The closed-form kernels of ``neural_tangents.stax`` and ``batch`` work with
this; empirical kernels, which walk jaxprs, look for more that is gone.
"""

import importlib
import sys
from contextlib import contextmanager
from types import ModuleType
from unittest.mock import patch

import jax.core
import jax.extend.core
import jax.interpreters.ad


@contextmanager
def _names_of_2023():
    util = ModuleType("jax.util")
    util.safe_map = lambda function, *lists: [function(*items) for items in zip(*lists, strict=True)]
    util.safe_zip = lambda *lists: list(zip(*lists, strict=True))
    moved = {
        name: getattr(jax.extend.core, name)
        for name in ("Jaxpr", "JaxprEqn", "Literal", "Primitive", "Var")
    }
    gone = {"zeros_like_p": jax.extend.core.Primitive("zeros_like")}
    modules = {"jax.util": util, "neural_tangents.experimental": ModuleType("neural_tangents.experimental")}
    with (
        patch.dict(sys.modules, modules),
        patch.multiple(jax.core, create=True, **moved),
        patch.multiple(jax.interpreters.ad, create=True, **gone),
    ):
        yield


def load():
    """The module ``neural_tangents``, and its ``stax``."""
    with _names_of_2023():
        nt = importlib.import_module("neural_tangents")
    return nt, nt.stax
