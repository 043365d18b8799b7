"""Programs that go wrong, each in its own way."""

import os
import signal
import time
from typing import Any

import jax
import jax.numpy as jnp

not_a_function = 3


def mismatched(a: Any, b: Any) -> Any:
    return helper(a, b)


def helper(a: Any, b: Any) -> Any:
    return a @ b


def crash(x: Any) -> Any:
    os.write(2, b"Check failed: divisor != 0\n")
    os.kill(os.getpid(), signal.SIGFPE)
    return x


def leave(x: Any) -> Any:
    raise SystemExit("no GPU here")


def sleep(x: Any) -> Any:
    time.sleep(600)
    return x


def needs_values() -> Any:
    x = jax.random.normal(jax.random.key(0), (4,))
    return x if float(x[0]) > 0 else -x


def on_tpu(x: Any) -> Any:
    return x + 1 if jax.default_backend() == "tpu" else jnp.sort(x)
