"""``xlamem compile``: the compiler's own answer for any TPU or GPU, with none of them here."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from xlamem.commands.exits import DOES_NOT_FIT, OK
from xlamem.commands.options import Output, output_options
from xlamem.errors import ProgramError, UnknownTargetError

if TYPE_CHECKING:
    from xlamem.compiler import Settings
    from xlamem.compiler.job import Job

_F = TypeVar("_F", bound=Callable[..., Any])

_EPILOG = """\b
Examples:
  xlamem compile train.py:step --inputs train.py:inputs --target v5e
  xlamem compile train.py:step --inputs train.py:inputs --set batch=64 --target h100
  xlamem compile model.py:loss --arg 'f32[1048576,3]' --arg 'bf16[3,64]' --target v6e
  xlamem compile train.py:step --inputs train.py:inputs --target v5p:2x2x2 \\
      --mesh data=4,model=2 --shard 'batch=data' --shard "params['w']=None,model"
  xlamem compile DUMP_DIR --target v5p              anybody's XLA dump, for another chip
  xlamem compile module.mlir --target h100          StableHLO, HLO, a jax.export artifact
"""


def _to_target(ctx: click.Context, param: click.Parameter, value: str) -> str:
    from xlamem.compiler.target import parse

    try:
        parse(value)
    except UnknownTargetError as error:
        raise click.BadParameter(str(error)) from None
    return value


def _number(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    """Ranges let through what is no number."""
    if value is not None and value != value:
        raise click.BadParameter("nan is no number")
    return value


def _checked(parse: str) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """A callback that refuses, as wrong usage, what the function of that name cannot read."""

    def callback(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
        from xlamem.compiler import spec

        read = getattr(spec, parse)
        try:
            for text in value if isinstance(value, tuple) else () if value is None else (value,):
                read(text)
        except ProgramError as error:
            raise click.BadParameter(str(error)) from None
        return value

    return callback


_SETTINGS = (
    click.option(
        "--target",
        required=True,
        callback=_to_target,
        metavar="CHIP",
        help="v5e, v5p:2x2x2, h100:8, cpu, attached (the devices that are here).",
    ),
    click.option(
        "--full", is_flag=True, help="Compile to the end; adds FLOPs. Otherwise stop when memory is known."
    ),
    click.option(
        "--memory-fraction",
        type=click.FloatRange(min=0, min_open=True, max=1),
        callback=_number,
        metavar="X",
        help="GPU: the share of its memory that can be used.  [default: 0.75, as JAX]",
    ),
    click.option(
        "--xla-option",
        "xla_options",
        multiple=True,
        callback=_checked("parse_setting"),
        metavar="NAME=VALUE",
        help="For the compiler.",
    ),
    click.option(
        "--timeout",
        type=click.FloatRange(min=0, min_open=True),
        callback=_number,
        default=1800,
        show_default=True,
        metavar="SECONDS",
        help="Give up after so long.",
    ),
    click.option("--no-cache", is_flag=True, help="Neither ask for an earlier answer nor keep this one."),
    click.option(
        "--dump", type=click.Path(file_okay=False), metavar="DIR", help="Copy the compiler's dump there."
    ),
)

_PROGRAM = (
    click.option("--inputs", metavar="FUNCTION", help="Returns the arguments, or (args, kwargs)."),
    click.option(
        "--set",
        "settings",
        multiple=True,
        callback=_checked("parse_setting"),
        metavar="NAME=VALUE",
        help="A keyword for the inputs function.",
    ),
    click.option(
        "--arg",
        "arguments",
        multiple=True,
        callback=_checked("parse_value"),
        metavar="ARRAY",
        help="The next argument: 'f32[8,128]', or a Python literal.",
    ),
    click.option(
        "--kwarg",
        "keywords",
        multiple=True,
        callback=_checked("parse_setting"),
        metavar="NAME=ARRAY",
        help="A keyword argument.",
    ),
    click.option(
        "--donate", multiple=True, metavar="ARG", help="An argument to donate, by position or name."
    ),
    click.option("--static", multiple=True, metavar="ARG", help="An argument to compile in, likewise."),
    click.option(
        "--mesh", callback=_checked("parse_mesh"), metavar="AXES", help="The mesh of devices: data=4,model=2."
    ),
    click.option(
        "--shard",
        multiple=True,
        callback=_checked("parse_axes"),
        metavar="INPUT=AXES",
        help="Cut an input: 'args[1]=data', 'params=None,model'.",
    ),
    click.option(
        "--real-inputs", is_flag=True, help="Run the inputs function for real, not under jax.eval_shape."
    ),
    click.option(
        "--host-backend", is_flag=True, help="Let jax.default_backend() answer for this host while tracing."
    ),
    click.option("--module", metavar="NAME", help="Of a dump folder, the program with this in its name."),
)


def _with(options: tuple[Callable[[_F], _F], ...]) -> Callable[[_F], _F]:
    def add(function: _F) -> _F:
        for option in reversed(options):
            function = option(function)
        return function

    return add


@click.command("compile", epilog=_EPILOG)
@click.argument("program", metavar="PROGRAM")
@_with(_SETTINGS)
@_with(_PROGRAM)
@click.option("--all", "everything", is_flag=True, help="Every suggestion and check.")
@output_options
def command(program: str, everything: bool, output: Output, **options: Any) -> None:
    """Compile PROGRAM for a chip that is not here, and say what it takes and whether it fits.

    PROGRAM is file.py:function or package.module:function, traced on shapes only; or a dump folder of XLA, a
    file of HLO or StableHLO, or an artifact of jax.export. The real compiler runs, in a process of its own; it
    is stopped once memory is known. The exit code is 3 if the program does not fit.
    """
    from xlamem.commands.reports import show
    from xlamem.commands.spinner import spinner
    from xlamem.compiler import answer

    job = _job(program, options)
    with spinner(f"compiling {program} for {options['target']}", output.color) as progress:
        report = answer(job, _settings(options, progress))
    show([report], output, command="compile", everything=everything)
    click.get_current_context().exit(DOES_NOT_FIT if report.fits is False else OK)


def _settings(options: dict[str, Any], progress: Callable[[str, float], None] | None) -> Settings:
    from xlamem.compiler import Settings
    from xlamem.compiler.cache import Cache
    from xlamem.compiler.spec import parse_setting

    return Settings(
        full=options["full"],
        memory_fraction=options["memory_fraction"],
        xla_options=dict(parse_setting(text) for text in options["xla_options"]),
        timeout=options["timeout"],
        cache=None if options["no_cache"] else Cache(),
        dump=options["dump"],
        progress=progress,
    )


_OF_FUNCTIONS = {
    "inputs": "--inputs",
    "settings": "--set",
    "arguments": "--arg",
    "keywords": "--kwarg",
    "donate": "--donate",
    "static": "--static",
    "mesh": "--mesh",
    "shard": "--shard",
    "real_inputs": "--real-inputs",
    "host_backend": "--host-backend",
}


def _job(program: str, options: dict[str, Any]) -> Job:
    from xlamem.compiler.foreign import is_foreign
    from xlamem.compiler.job import Job
    from xlamem.compiler.spec import FunctionSpec, parse_setting
    from xlamem.compiler.target import parse

    target = parse(options["target"])
    if options["memory_fraction"] is not None and target.platform in ("tpu", "cpu"):
        raise click.UsageError(f"--memory-fraction is for GPUs, and {target} is none")
    if is_foreign(program):
        if given := [flag for name, flag in _OF_FUNCTIONS.items() if options[name]]:
            raise click.UsageError(
                f"{program} is a whole program: its inputs are part of it, and {', '.join(given)} not to be given"
            )
        return Job(target, path=program, module=options["module"])
    if options["module"]:
        raise click.UsageError(f"--module is for dump folders, and {program} is none")
    if not options["inputs"] and (options["settings"] or options["real_inputs"]):
        flag = "--set" if options["settings"] else "--real-inputs"
        raise click.UsageError(f"{flag} is for the inputs function; name one with --inputs")
    function = FunctionSpec(
        program,
        inputs=options["inputs"],
        arguments=options["arguments"],
        keywords=tuple(parse_setting(text) for text in options["keywords"]),
        settings=tuple(parse_setting(text) for text in options["settings"]),
        mesh=options["mesh"],
        shard=options["shard"],
        donate=options["donate"],
        static=options["static"],
        real_inputs=options["real_inputs"],
        as_target=not options["host_backend"],
    )
    return Job(target, function=function)
