"""A small MLP and its training step, in Equinox and Optax: the model is a pytree with functions among its leaves.

xlamem compile examples/equinox_mlp.py:step --inputs examples/equinox_mlp.py:inputs --target v5e
xlamem compile examples/equinox_mlp.py:step --inputs examples/equinox_mlp.py:inputs --target v2 --set batch=1048576

Leaves that are no arrays, such as the activation function, are built into the program.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

adam = optax.adam(1e-3)


def loss(model, x, y):
    return jnp.mean((jax.vmap(model)(x) - y) ** 2)


@eqx.filter_jit(donate="all-except-first")
def step(batch, model, state):
    value, gradient = eqx.filter_value_and_grad(loss)(model, *batch)
    updates, state = adam.update(gradient, state, eqx.filter(model, eqx.is_array))
    return eqx.apply_updates(model, updates), state, value


def inputs(batch=4096, width=256, depth=4):
    model = eqx.nn.MLP(64, 8, width, depth, activation=jax.nn.gelu, key=jax.random.key(0))
    state = adam.init(eqx.filter(model, eqx.is_array))
    return (jnp.zeros((batch, 64)), jnp.zeros((batch, 8))), model, state
