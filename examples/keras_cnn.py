"""A small convolution network in Keras 3 on JAX, compiled as ``model.fit`` would run it, and never run.

xlamem compile examples/keras_cnn.py:step --inputs examples/keras_cnn.py:inputs --target v5e
xlamem compile examples/keras_cnn.py:step --inputs examples/keras_cnn.py:inputs --set batch=5000 --target h100

Three convolutions on 16x16 images of one channel, a regression, SGD: grow the batch and watch. ``state`` is what
Keras keeps in variables: the weights, the rest of the model, the optimizer's and the metrics'.
"""

import os

os.environ.setdefault("KERAS_BACKEND", "jax")  # read when keras is imported

import jax
import keras
from keras import layers

SIZE = 16


def build():
    model = keras.Sequential(
        [
            keras.Input((SIZE, SIZE, 1)),
            layers.Conv2D(100, 3, padding="same"),
            layers.Conv2D(256, 3, padding="same"),
            layers.Conv2D(32, 3, padding="same"),
            layers.MaxPooling2D(2),
            layers.Flatten(),
            layers.Dense(4),
            layers.Dense(1),
        ]
    )
    model.compile(optimizer="sgd", loss="mse", metrics=["mae"])
    # Makes the variables of the optimizer and the metrics, which fit() would make at the first batch.
    one = keras.KerasTensor((1, SIZE, SIZE, 1)), keras.KerasTensor((1, 1))
    model.optimizer.build(model.trainable_variables)
    model._symbolic_build(data_batch=one)
    return model


model = build()


def _shapes(variables):
    return [jax.ShapeDtypeStruct(v.shape, v.dtype) for v in variables]


@jax.jit(donate_argnums=0)
def step(state, data):
    logs, state = model.train_step(state, data)
    return state, logs


def inputs(batch=1000):
    state = (
        _shapes(model.trainable_variables),
        _shapes(model.non_trainable_variables),
        _shapes(model.optimizer.variables),
        _shapes(model.metrics_variables),
    )
    images = jax.ShapeDtypeStruct((batch, SIZE, SIZE, 1), "float32")
    return state, (images, jax.ShapeDtypeStruct((batch, 1), "float32"))
