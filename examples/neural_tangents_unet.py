"""The kernel of an infinitely wide UNet, in neural-tangents: its covariances fill a TPU with ten small images.

xlamem compile examples/neural_tangents_unet.py:kernel --inputs examples/neural_tangents_unet.py:inputs --target v2
... --host-backend          traced as on a host with no TPU: convolutions of one channel, not of 128
... --set images=4          fewer of them; --set size=32, smaller ones

Every layer passes on the covariance of all pairs of pixels of all pairs of images: f32[n,n,64,64,64,64], 6.25 GiB
for n = 10, in convolutions of [n*n*64*64, 1, 64, 64], where a TPU pads the single channel.
"""

import jax.numpy as jnp
from neural_tangents_shim import load

nt, stax = load()


def convolution(width):
    return stax.serial(stax.Conv(width, (3, 3), padding="SAME"), stax.Relu())


def unet(depth=3, width=32):
    """``depth`` times down and up again; every level puts what it had beside what comes back."""
    if depth == 0:
        return convolution(width)
    below = stax.serial(
        stax.Conv(2 * width, (2, 2), strides=(2, 2)),
        unet(depth - 1, 2 * width),
        stax.ConvTranspose(width, (2, 2), strides=(2, 2)),
    )
    return stax.serial(
        convolution(width),
        stax.FanOut(2),
        stax.parallel(stax.Identity(), below),
        stax.FanInConcat(axis=-1),
        convolution(width),
    )


_, _, kernel_fn = stax.serial(unet(), stax.GlobalAvgPool(), stax.Dense(1))


def kernel(x1, x2):
    return kernel_fn(x1, x2, "nngp")


def inputs(images=10, size=64, channels=1):
    x = jnp.zeros((images, size, size, channels))
    return x, x
