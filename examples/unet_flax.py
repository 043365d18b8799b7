r"""A UNet that denoises colour images, in Flax NNX and Optax, written the way NNX is: a step that changes the model.

xlamem compile examples/unet_flax.py:step --inputs examples/unet_flax.py:inputs --target v5e
xlamem compile examples/unet_flax.py:step --inputs examples/unet_flax.py:inputs --target h100 \
    --set batch=128 --set width=64

A TPU stores an axis of 3 channels in rows of 128 lanes or 4 sublanes. Which of the two, and what is padded, is in
the report.
"""

import jax
import jax.numpy as jnp
import optax
from flax import nnx


class Level(nnx.Module):
    """Two convolutions of 3x3, normalised."""

    def __init__(self, inside, outside, rngs):
        self.conv1 = nnx.Conv(inside, outside, (3, 3), rngs=rngs)
        self.norm1 = nnx.GroupNorm(outside, num_groups=8, rngs=rngs)
        self.conv2 = nnx.Conv(outside, outside, (3, 3), rngs=rngs)
        self.norm2 = nnx.GroupNorm(outside, num_groups=8, rngs=rngs)

    def __call__(self, x):
        x = nnx.silu(self.norm1(self.conv1(x)))
        return nnx.silu(self.norm2(self.conv2(x)))


class UNet(nnx.Module):
    def __init__(self, width=32, depth=3, channels=3, *, rngs):
        widths = [width * 2**i for i in range(depth + 1)]
        self.down = nnx.List([Level(a, b, rngs) for a, b in zip([channels, *widths], widths, strict=False)])
        self.up = nnx.List([Level(3 * w, w, rngs) for w in widths[:-1]])
        self.out = nnx.Conv(width, channels, (1, 1), rngs=rngs)

    def __call__(self, x):
        skips = []
        for level in self.down[:-1]:
            x = level(x)
            skips.append(x)
            x = nnx.avg_pool(x, (2, 2), (2, 2))
        x = self.down[-1](x)
        for level, skip in zip(reversed(self.up), reversed(skips), strict=True):
            x = jax.image.resize(x, (*skip.shape[:3], x.shape[-1]), "nearest")
            x = level(jnp.concatenate([x, skip], axis=-1))
        return self.out(x)


@nnx.jit(donate_argnums=(0, 1))
def step(model, optimizer, noisy, clean):
    def loss(model):
        return jnp.mean((model(noisy) - clean) ** 2)

    value, gradient = nnx.value_and_grad(loss)(model)
    optimizer.update(model, gradient)
    return value


def inputs(batch=64, size=64, channels=3, width=32, depth=3):
    model = UNet(width, depth, channels, rngs=nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adamw(1e-3), wrt=nnx.Param)
    images = jnp.zeros((batch, size, size, channels))
    return model, optimizer, images, images
