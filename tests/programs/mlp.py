"""A small training step, as users write them: a function and its inputs."""

from typing import Any

import jax
import jax.numpy as jnp


def loss(params: Any, batch: Any) -> Any:
    x = batch["x"]
    for w in params:
        x = jnp.tanh(x @ w)
    return jnp.mean((x - batch["y"]) ** 2)


def plain_step(params: Any, batch: Any) -> Any:
    grads = jax.grad(loss)(params, batch)
    return jax.tree.map(lambda w, g: w - 0.1 * g, params, grads)


step = jax.jit(plain_step)


def inputs(batch: int = 256, width: int = 512, layers: int = 3) -> Any:
    params = [jax.random.normal(jax.random.key(0), (width, width)) for _ in range(layers)]
    return params, {"x": jnp.zeros((batch, width)), "y": jnp.zeros((batch, width))}
