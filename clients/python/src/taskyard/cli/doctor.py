"""Commands about the health of the data: doctor, quarantines."""

from __future__ import annotations

import click

from taskyard.cli import printing, screen
from taskyard.cli.failure import FAILED
from taskyard.cli.lists import print_list, word
from taskyard.cli.printing import exact_option, output_option
from taskyard.cli.session import call, for_each, with_client
from taskyard.client import Client
from taskyard.convert import to_datetime
from taskyard.names import last_segment
from taskyard.v1 import admin_service_pb2 as pb


@click.command()
@click.argument("checks", nargs=-1, metavar="[CHECK]...")
@click.option("--repair", is_flag=True, help="Repair what can safely be repaired.")
@output_option("table", "json", "yaml")
@with_client
async def doctor(client: Client, checks: tuple[str, ...], repair: bool, output: str) -> int:
    """Check the invariants of the data.

    Checks the invariants against the rows: every running task has a live lease, every occupied slot an owner,
    counters equal a recount. The exit code is 0 if nothing is wrong, or if everything was repaired.

    An edited change log cannot be repaired: `doctor seals --repair` acknowledges the findings.

    \b
    Examples:
      taskyard doctor
      taskyard doctor --repair
      taskyard doctor seals --repair
    """
    response = await client.admin.doctor(checks, repair=repair)
    if output != "table":
        printing.print_message(response, output)
        return 0 if response.healthy else FAILED
    table = screen.Table("CHECK", "STATE", "FOUND", *(("REPAIRED",) if repair else ()), "WHAT")
    table.add(_row(finding, repair) for finding in response.findings)
    for finding in response.findings:
        for example in finding.examples:
            click.echo(f"  {finding.check}: {example}")
    if response.healthy:
        click.echo(screen.paint("Healthy.", "ok"))
    elif not repair:
        click.echo("`taskyard doctor --repair` repairs what can safely be repaired.", err=True)
    return 0 if response.healthy else FAILED


def _row(finding: pb.DoctorFinding, repair: bool) -> tuple[str, ...]:
    severity = word(pb.DoctorSeverity, finding.severity, "DOCTOR_SEVERITY_")
    repaired = str(finding.repaired_count) if finding.count else ""
    return (
        finding.check,
        severity if finding.severity else "ok",
        str(finding.count),
        *((repaired,) if repair else ()),
        screen.clean(finding.message),
    )


@click.group(invoke_without_command=True)
@output_option("table", "json", "yaml", "name", "jsonpath")
@exact_option
@click.pass_context
def quarantines(context: click.Context, output: str, exact: bool) -> int | None:
    """List quarantined specs; release one.

    A spec that crashed too many runners is quarantined: its tasks end as EXHAUSTED.

    \b
    Examples:
      taskyard quarantines
      taskyard quarantines release tenants/acme/quarantines/9f86d081
    """
    if context.invoked_subcommand is not None:
        return None

    def row(one: pb.Quarantine) -> tuple[str, ...]:
        since = screen.format_time(to_datetime(one.create_time), exact)
        return one.name, one.task_type, str(one.runner_loss_count), since, last_segment(one.example_task)

    async def print_all(client: Client) -> None:
        titles = ("QUARANTINE", "TYPE", "RUNNERS", "SINCE", "EXAMPLE")
        found = client.admin.quarantines()
        await print_list(found, output, titles, row, "No quarantines.", lambda one: one.name)

    return call(context.obj, print_all)


@quarantines.command()
@click.argument("names", nargs=-1, required=True, metavar="QUARANTINE...")
@with_client
async def release(client: Client, names: tuple[str, ...]) -> int:
    """Let quarantined specs run again.

    \b
    Example:
      taskyard quarantines release tenants/acme/quarantines/9f86d081
    """

    async def release_one(name: str) -> str:
        await client.admin.release_quarantine(name)
        return name

    return await for_each(client, names, release_one, lambda name: click.echo(f"{name}  released"))
