"""Programs that go wrong, each in its own way."""

import os
import signal
import time

import jax
import jax.numpy as jnp


def mismatched(a, b):
    return helper(a, b)


def helper(a, b):
    return a @ b


def kill(signum):
    os.kill(os.getpid(), getattr(signal, signum))


def crash(x):
    print("about to divide by zero")
    print("Fatal: division", flush=True)
    kill("SIGFPE")
    return x


def leave(x):
    raise SystemExit("no GPU here")


def sleep(x):
    time.sleep(600)
    return x


def needs_values():
    x = jax.random.normal(jax.random.key(0), (4,))
    return x if float(x[0]) > 0 else -x


not_a_function = 3


def on_tpu(x):
    return x.sum() if jax.default_backend() == "tpu" else jnp.sort(x)
