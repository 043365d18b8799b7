"""How long an answer about memory takes: stopped when the buffers are assigned, compiled to the end, asked again.

    python benchmarks/bench_compile.py [TARGET ...]

Both ways run in this order, in one run, with an empty cache; the ratio is what counts. Needs `xlamem[tpu,gpu]`.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from os import environ
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

import xlamem
from xlamem.compiler import Settings, compile_program, lower
from xlamem.compiler.cache import Cache
from xlamem.compiler.inputs import shape_struct
from xlamem.compiler.target import parse

SIZE = {"width": 512, "heads": 8, "layers": 6, "length": 512, "words": 8192}


def norm(x: Any) -> Any:
    return (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)


def gpt(params: Any, tokens: Any) -> Any:
    x = params["embed"][tokens]
    batch, length, _ = x.shape
    mask = jnp.tril(jnp.ones((length, length), bool))
    for layer in params["layers"]:
        q, k, v = jnp.split(norm(x) @ layer["qkv"], 3, -1)
        q, k, v = (t.reshape(batch, length, SIZE["heads"], -1) for t in (q, k, v))
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / q.shape[-1] ** 0.5
        weights = jax.nn.softmax(jnp.where(mask, scores, -1e9))
        x = x + jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(x.shape) @ layer["out"]
        x = x + jax.nn.gelu(norm(x) @ layer["up"]) @ layer["down"]
    scores = norm(x) @ params["embed"].T
    return -jnp.take_along_axis(jax.nn.log_softmax(scores[:, :-1]), tokens[:, 1:, None], -1).mean()


def gpt_inputs(batch: int = 16) -> tuple[Any, Any]:
    w, n = SIZE["width"], SIZE["words"]
    layer = {"qkv": (w, 3 * w), "out": (w, w), "up": (w, 4 * w), "down": (4 * w, w)}
    layers = [{name: array(shape) for name, shape in layer.items()} for _ in range(SIZE["layers"])]
    return {"embed": array((n, w)), "layers": layers}, array((batch, SIZE["length"]), jnp.int32)


def convolve(x: Any, kernel: Any, stride: int = 1) -> Any:
    return jax.lax.conv_general_dilated(
        x, kernel, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def unet(params: Any, images: Any) -> Any:
    x, skips = images, []
    for first, second in params["down"]:
        x = jax.nn.relu(convolve(jax.nn.relu(convolve(x, first)), second))
        skips.append(x)
        x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "SAME")
    for first, second in params["up"]:
        skip = skips.pop()
        x = jnp.concatenate([jax.image.resize(x, (*skip.shape[:3], x.shape[3]), "nearest"), skip], -1)
        x = jax.nn.relu(convolve(jax.nn.relu(convolve(x, first)), second))
    return ((convolve(x, params["last"]) - images) ** 2).mean()


def unet_inputs(batch: int = 16) -> tuple[Any, Any]:
    down, up, channels = [], [], 3
    widths = (64, 128, 256)
    for wide in widths:
        down.append((array((3, 3, channels, wide)), array((3, 3, wide, wide))))
        channels = wide
    for wide in reversed(widths):
        up.append((array((3, 3, channels + wide, wide)), array((3, 3, wide, wide))))
        channels = wide
    params = {"down": down, "up": up, "last": array((1, 1, channels, 3))}
    return params, array((batch, 128, 128, 3))


def array(shape: tuple[int, ...], dtype: Any = jnp.float32) -> Any:
    return shape_struct(shape, dtype)


def train(loss: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """A step of Adam."""

    def step(state: Any, batch: Any) -> Any:
        params, mean, square = state
        value, grads = jax.value_and_grad(loss)(params, batch)
        mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, grads)
        square = jax.tree.map(lambda s, g: 0.99 * s + 0.01 * g * g, square, grads)
        params = jax.tree.map(lambda p, m, s: p - 1e-3 * m / (jnp.sqrt(s) + 1e-8), params, mean, square)
        return (params, mean, square), value

    return jax.jit(step, donate_argnums=0)


PROGRAMS = {"GPT train step": (gpt, gpt_inputs), "UNet train step": (unet, unet_inputs)}


def seconds(program: xlamem.compiler.Program, target: str, settings: Settings) -> tuple[float, Any]:
    begun = time.perf_counter()
    report = compile_program(program, target, settings)
    return time.perf_counter() - begun, report


def table(report: Any) -> list[tuple[str, str, int]]:
    return [(a.space, a.kind, int(a.bytes)) for a in report.allocations]


def compare(name: str, target: str) -> None:
    loss, inputs = PROGRAMS[name]
    params, batch = inputs()
    platform = parse(target).platform
    assert platform is not None
    program = lower(train(loss), (params, params, params), batch, platform=platform)
    with tempfile.TemporaryDirectory() as folder:
        cache = Cache(folder)
        short, brief = seconds(program, target, Settings(cache=cache))
        whole, full = seconds(program, target, Settings(full=True, cache=cache))
        again, _ = seconds(program, target, Settings(cache=cache))
    same = "the same allocations" if table(brief) == table(full) else "NOT the same allocations"
    sys.stdout.write(
        f"{name} on {target}: memory only {short:.1f} s, to the end {whole:.1f} s, {short / whole:.2f} of it; "
        f"{same}; asked again {again * 1000:.0f} ms\n"
    )


def command_line() -> None:
    """A hit of the cache as people see it: a whole run of the command."""
    mlp = Path(__file__).parents[1] / "tests" / "programs" / "mlp.py"
    command = [
        sys.executable,
        "-c",
        "from xlamem.commands import main; main()",
        "compile",
        f"{mlp}:step",
        "--inputs",
        f"{mlp}:inputs",
        "--target",
        "cpu",
    ]
    with tempfile.TemporaryDirectory() as folder:
        for what in ("first", "again"):
            begun = time.perf_counter()
            subprocess.run(
                command, check=True, capture_output=True, env={**environ, "XLAMEM_CACHE_DIR": folder}
            )
            sys.stdout.write(f"xlamem compile, {what}: {time.perf_counter() - begun:.2f} s\n")


if __name__ == "__main__":
    for target in sys.argv[1:] or ["v5e", "h100"]:
        for name in PROGRAMS:
            compare(name, target)
    command_line()
