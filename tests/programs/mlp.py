"""A small training step, as users write them: a function, its inputs, and ways to get it wrong."""

import jax
import jax.numpy as jnp


def loss(params, batch):
    x = batch["x"]
    for w in params:
        x = jnp.tanh(x @ w)
    return jnp.mean((x - batch["y"]) ** 2)


@jax.jit
def step(params, batch):
    grads = jax.grad(loss)(params, batch)
    return jax.tree.map(lambda w, g: w - 0.1 * g, params, grads)


def inputs(batch=256, width=512, layers=3):
    key = jax.random.key(0)
    params = [jax.random.normal(key, (width, width)) for _ in range(layers)]
    return params, {"x": jnp.zeros((batch, width)), "y": jnp.zeros((batch, width))}
