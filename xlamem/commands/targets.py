"""``xlamem targets``: the chips that are known, and their memory."""

from __future__ import annotations

import click

from xlamem.commands.options import Output, output_options

_EPILOG = """\b
Examples:
  xlamem targets
  xlamem targets -f json | jq '.targets[] | select(.kind == "tpu") | .name'
"""


@click.command("targets", epilog=_EPILOG)
@output_options
def command(output: Output) -> None:
    """List the TPUs and GPUs that are known: memory, what the compiler allows of it, and other names."""
    from xlamem.show import targets as show
    from xlamem.targets import all_devices

    devices = tuple(all_devices())

    output.emit(
        lambda width: show.lines(devices, width=width),
        json=lambda: show.to_json(devices),
        csv=lambda: show.to_csv(devices),
        markdown=lambda: show.to_markdown(devices),
    )
