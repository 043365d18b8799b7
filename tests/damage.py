"""What users' tools do to a log before it reaches us, as functions from text to text."""

from __future__ import annotations

import json
from collections.abc import Callable


def _each_line(prefix: str) -> Callable[[str], str]:
    return lambda text: "".join(f"{prefix}{line}\n" for line in text.splitlines())


def _glog_first_line(text: str) -> str:
    """glog writes its stamp before the first line of a message only, here before the head."""
    stamp = "E1130 16:18:05.651026   11990 compiler.cc:3781] "
    return text.replace("RuntimeError: Res", stamp + "Res").replace("jax.errors.JaxRuntimeError: ", stamp)


def _tensorflow_first_line(text: str) -> str:
    stamp = "2020-05-04 09:05:40.719745: E    1578 path/to/file.cc:76] "
    return text.replace("RuntimeError: Res", stamp + "Res").replace("jax.errors.JaxRuntimeError: ", stamp)


def _hard_wrap(width: int) -> Callable[[str], str]:
    """Broken in mid-word at a fixed width, as when a terminal is copied."""

    def wrap(text: str) -> str:
        lines: list[str] = []
        for line in text.splitlines():
            lines += [line[at : at + width] for at in range(0, len(line), width)] or [""]
        return "\n".join(lines) + "\n"

    return wrap


def _markdown(text: str) -> str:
    import re

    text = re.sub(r"^  (\d+)\. ", r"  \1\\. ", text, flags=re.MULTILINE)
    return text.replace("Used ", "**Used ").replace(" hbm. Exceeded", " hbm.** Exceeded")


DAMAGE: dict[str, Callable[[str], str]] = {
    "as it is": lambda text: text,
    "crlf": lambda text: text.replace("\n", "\r\n"),
    "old mac": lambda text: text.replace("\n", "\r"),
    "tabs": lambda text: text.replace("     ", "\t"),
    "no indentation": lambda text: "\n".join(line.lstrip() for line in text.splitlines()),
    "ansi": lambda text: "".join(f"\x1b[31m{line}\x1b[0m\x1b[K\n" for line in text.splitlines()),
    "glog": _glog_first_line,
    "tensorflow": _tensorflow_first_line,
    "glog on every line": _each_line("E1130 16:17:00.193061   11420 file.cc:3781] "),
    "glog epoch": _each_line("W0000 00:00:1756998431.440298    5182 "),
    "vllm": _each_line("(EngineCore pid=1) ERROR 06-03 07:41:11 [core.py:1184] "),
    "ray": _each_line("(Worker pid=489) "),
    "ray in colour": _each_line("\x1b[36m(TrainWorker pid=489, ip=10.0.0.2)\x1b[0m "),
    "compose": _each_line("qwen3-1  | "),
    "kubernetes": _each_line("2025-06-03T07:41:11.123456789Z "),
    "iso": _each_line("2025-06-03 07:41:11,123 "),
    "python logging": _each_line("ERROR:root:"),
    "mail": _each_line("> "),
    "mail twice": _each_line("> > "),
    "pytest": _each_line("E   "),
    "rank": _each_line("[rank 3]: "),
    "srun": _each_line("12: "),
    "worker column": _each_line("worker-7: "),
    "json": lambda text: json.dumps({"level": "error", "message": text}) + "\n",
    "docker": lambda text: "".join(
        json.dumps({"log": line + "\n", "stream": "stderr", "time": "2025-06-03T07:41:11.123456789Z"}) + "\n"
        for line in text.splitlines()
    ),
    "cri": _each_line("2025-06-03T07:41:11.123456789Z stderr F "),
    "cloud": lambda text: "".join(
        json.dumps({"severity": "ERROR", "jsonPayload": {"message": line}}) + "\n"
        for line in text.splitlines()
    ),
    "json in json": lambda text: json.dumps({"log": json.dumps({"message": text})}) + "\n",
    "repr": lambda text: repr(text) + "\n",
    "one line": lambda text: " ".join(text.split()),
    "wrapped at 80": _hard_wrap(80),
    "wrapped at 117": _hard_wrap(117),
    "blank lines between": lambda text: text.replace("\n", "\n\n"),
    "markdown": _markdown,
    "trailing spaces": lambda text: text.replace("\n", "   \n"),
    "bom": lambda text: "\ufeff" + text,
}

#: Broken at a width before something was put in front of each piece: only a whole read tries to join these.
REWRAPPED: dict[str, Callable[[str], str]] = {
    "wrapped, then quoted": lambda text: _each_line("> ")(_hard_wrap(72)(text)),
    "wrapped, then by a logger": lambda text: _each_line(
        "(EngineCore pid=1) ERROR 06-03 07:41:11 [core.py:1184] "
    )(_hard_wrap(90)(text)),
}
