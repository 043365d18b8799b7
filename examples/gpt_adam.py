r"""A GPT and its training step, in Flax Linen and Optax: 6 layers, 512 wide, heads of 64, 27.6M parameters.

xlamem compile examples/gpt_adam.py:step --inputs examples/gpt_adam.py:inputs --target v5e
xlamem compile examples/gpt_adam.py:step --inputs examples/gpt_adam.py:inputs --target h100 \
    --set batch=64 --donate state

Adam keeps two more copies of the parameters; what grows with the batch are the activations that the backward
pass needs: the attention's weights, [batch, head, time, time] a layer, before all others.
"""

from typing import NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax

VOCABULARY = 8192
TIME = 512
WIDTH = 512
HEADS = 8
LAYERS = 6


class Attention(nn.Module):
    @nn.compact
    def __call__(self, x):
        batch, time, width = x.shape
        q, k, v = jnp.split(nn.Dense(3 * width, name="qkv")(x), 3, axis=-1)
        q, k, v = (a.reshape(batch, time, HEADS, width // HEADS) for a in (q, k, v))
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / (width // HEADS) ** 0.5
        causal = jnp.tril(jnp.ones((time, time), bool))
        weights = jax.nn.softmax(jnp.where(causal, scores, -1e9), axis=-1)
        mixed = jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(batch, time, width)
        return nn.Dense(width, name="out")(mixed)


class Block(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = x + Attention(name="attention")(nn.LayerNorm()(x))
        hidden = nn.gelu(nn.Dense(4 * x.shape[-1], name="up")(nn.LayerNorm()(x)))
        return x + nn.Dense(x.shape[-1], name="down")(hidden)


class GPT(nn.Module):
    @nn.compact
    def __call__(self, tokens):
        embed = nn.Embed(VOCABULARY, WIDTH, name="tokens")
        position = self.param("positions", nn.initializers.normal(0.02), (TIME, WIDTH))
        x = embed(tokens) + position[: tokens.shape[1]]
        for i in range(LAYERS):
            x = Block(name=f"layer{i}")(x)
        return nn.Dense(VOCABULARY, use_bias=False, name="logits")(nn.LayerNorm()(x))


class State(NamedTuple):
    params: dict
    optimizer: optax.OptState


model = GPT()
adam = optax.adam(3e-4)


def loss(params, tokens):
    logits = model.apply(params, tokens[:, :-1])
    return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean()


def step(state, tokens):
    value, gradient = jax.value_and_grad(loss)(state.params, tokens)
    updates, optimizer = adam.update(gradient, state.optimizer, state.params)
    return State(optax.apply_updates(state.params, updates), optimizer), value


def inputs(batch=32):
    tokens = jnp.zeros((batch, TIME + 1), jnp.int32)
    params = model.init(jax.random.key(0), tokens[:1, :-1])
    return State(params, adam.init(params)), tokens
