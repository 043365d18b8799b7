"""Small functions with an axis of 2, 3, 5 or 64 in the wrong place: what a TPU's tiles cost, and where.

xlamem compile examples/narrow_axes.py:rows --inputs examples/narrow_axes.py:points --target v5e
xlamem compile examples/narrow_axes.py:sum_by_segment --inputs examples/narrow_axes.py:labelled_points --target v5e
xlamem compile examples/narrow_axes.py:rotate_halves --inputs examples/narrow_axes.py:queries --target v5e
xlamem compile examples/narrow_axes.py:rotate_pairs --inputs examples/narrow_axes.py:queries --target v5e
xlamem compile examples/narrow_axes.py:stack_matrices --inputs examples/narrow_axes.py:matrices --target v5e
xlamem compile examples/narrow_axes.py:carry_windows --inputs examples/narrow_axes.py:windows --target v5e
xlamem compile examples/narrow_axes.py:attend --inputs examples/narrow_axes.py:heads --target v5e

In HBM the two innermost axes are cut in tiles of some 8 x 128 and filled up. Of a program's inputs and outputs XLA
chooses which axes those are, and chooses well; inside, an operation can want another order: a scatter, the results
of a scan, the halves of a last axis.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax.experimental.layout import Format, Layout

ROW_MAJOR = Format(Layout((0, 1)), jax.sharding.SingleDeviceSharding(jax.devices()[0]))


@jax.jit(in_shardings=ROW_MAJOR, out_shardings=ROW_MAJOR)
def rows(points):
    """Points in and out with a point in a row, as something outside of XLA may want it: 3 of 128 lanes are data."""
    return points * 2.0 + 1.0


def points(count=1 << 20):
    return jnp.zeros((count, 3))


def sum_by_segment(points, segments):
    """A scatter with rows of 3."""
    return jax.ops.segment_sum(points, segments, num_segments=1024)


def labelled_points(count=1 << 20):
    return jnp.zeros((count, 3)), jnp.zeros(count, jnp.int32)


def _angles(x):
    time, width = x.shape[1], x.shape[-1]
    frequencies = 10000.0 ** (-jnp.arange(0, width, 2) / width)
    angles = jnp.arange(time)[:, None] * frequencies
    return jnp.cos(angles)[:, None], jnp.sin(angles)[:, None]


@jax.grad
def rotate_halves(x):
    """Rotary embedding of the halves of an axis of 128, and its gradient: halves are 64 lanes wide."""
    cos, sin = _angles(x)
    a, b = jnp.split(x, 2, axis=-1)
    return jnp.sum(jnp.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1) ** 2)


@jax.grad
def rotate_pairs(x):
    """The same of neighbours: pairs are 2 lanes wide."""
    cos, sin = _angles(x)
    a, b = x[..., 0::2], x[..., 1::2]
    return jnp.sum(jnp.stack([a * cos - b * sin, b * cos + a * sin], axis=-1).reshape(x.shape) ** 2)


def queries(batch=4, time=2048, heads=16, width=128):
    return jnp.zeros((batch, time, heads, width))


@partial(jax.grad, argnums=2)
def stack_matrices(state, weights, drives):
    """A scan over small matrices, and its gradient, for which the matrix of every step is kept."""

    def advance(state, drive):
        state = jnp.tanh(state @ weights + drive)
        return state, state

    return jnp.sum(jax.lax.scan(advance, state, drives)[1] ** 2)


def matrices(steps=20000, height=4, width=3):
    return jnp.zeros((height, width)), jnp.zeros((width, width)), jnp.zeros((steps, height, width))


@jax.grad
def carry_windows(windows, drives):
    """A scan whose state is many windows of 5 by 5, and its gradient, for which every state is kept."""

    def advance(windows, drive):
        around = jnp.roll(windows, 1, axis=-1) + jnp.roll(windows, 1, axis=-2)
        return jnp.tanh(windows + drive * around), None

    return jnp.sum(jax.lax.scan(advance, windows, drives)[0])


def windows(batch=65536, steps=64):
    return jnp.zeros((batch, 5, 5)), jnp.zeros(steps)


@jax.grad
def attend(qkv):
    """Attention with heads of 64 numbers, half a row of lanes, and its gradient."""
    q, k, v = qkv
    scores = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) / q.shape[-1] ** 0.5)
    return jnp.sum(jnp.einsum("bhqk,bkhd->bqhd", scores, v) ** 2)


def heads(batch=8, time=1024, heads=16, width=64):
    return jnp.zeros((3, batch, time, heads, width))
