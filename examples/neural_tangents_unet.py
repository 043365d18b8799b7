r"""The kernel of an infinitely wide UNet, in neural-tangents: its covariances fill a TPU with ten small images.

pip install --no-deps neural-tangents frozendict
xlamem compile examples/neural_tangents_unet.py:kernel --inputs examples/neural_tangents_unet.py:inputs --target v2 \
    --host-backend
xlamem compile examples/neural_tangents_unet.py:kernel --inputs examples/neural_tangents_unet.py:inputs --target v5p \
    --set images=12

neural-tangents asks for the backend, and takes convolutions of 128 channels on a TPU, of one elsewhere;
--host-backend traces it as on a host with no TPU.

Every layer passes on the covariance of all pairs of pixels of all pairs of images: f32[n,n,64,64,64,64], 6.25 GiB
for n = 10, through convolutions of [n*n*64*64, 1, 64, 64], where a TPU pads the single channel to two sublanes.
``pooled_kernel`` is a leaner network, and takes more: see which copies are alive at the peak.
"""

import jax.numpy as jnp
from neural_tangents_shim import load

nt, stax = load()


def convolutions(count, width):
    return stax.serial(*[stax.Conv(width, (3, 3), padding="SAME"), stax.Relu()] * count)


def unet(depth, count, pooled, width=32):
    """``depth`` times down and up again, with ``count`` convolutions a time, beside what was there before."""
    if depth == 0:
        return convolutions(count, width)
    smaller = stax.AvgPool((2, 2), strides=(2, 2)) if pooled else stax.Conv(width, (2, 2), strides=(2, 2))
    below = stax.serial(
        smaller,
        unet(depth - 1, count, pooled, 2 * width),
        stax.ConvTranspose(width, (2, 2), strides=(2, 2)),
    )
    return stax.serial(
        convolutions(count, width),
        stax.FanOut(2),
        stax.parallel(stax.Identity(), below),
        stax.FanInConcat(axis=-1),
        convolutions(count, width),
    )


def kernel_of(network):
    """One number for every pair of images: the covariance of what the network says of them."""
    _, _, kernel = stax.serial(network, stax.GlobalAvgPool(), stax.Dense(1))
    return kernel


_kernel = kernel_of(unet(depth=2, count=2, pooled=False))
_pooled = kernel_of(unet(depth=2, count=1, pooled=True))


def kernel(x1, x2):
    return _kernel(x1, x2, "nngp")


def pooled_kernel(x1, x2):
    return _pooled(x1, x2, "nngp")


def inputs(images=10, size=64, channels=1):
    x = jnp.zeros((images, size, size, channels))
    return x, x
