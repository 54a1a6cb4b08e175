"""Commands about tenants."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import click

from taskyard.cli import printing, screen
from taskyard.cli.complete import tenant_ids
from taskyard.cli.lists import confirm, limit, print_list, word, yes_option
from taskyard.cli.printing import exact_option, output_option
from taskyard.cli.session import call, for_each, with_client
from taskyard.client import Client
from taskyard.convert import to_datetime
from taskyard.names import last_segment
from taskyard.v1 import tenant_pb2, tenant_service_pb2

TIERS = ("free", "standard", "premium", "enterprise")
TITLES = ("TENANT", "TIER", "STATE", "RUNNING", "QUEUED", "PER SECOND", "NAME")
# Options and the quota that each sets.
_QUOTAS = {
    "max_running": "max_concurrent_tasks",
    "max_queued": "max_queue_depth",
    "rate": "rate_limit_per_sec",
    "burst": "rate_burst",
    "weight": "weight",
}


def _changing(required: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The options of create and update."""
    options = (
        click.option("--tier", type=click.Choice(TIERS), required=required, help="Sets the default quota."),
        click.option("--display-name", metavar="NAME", help="Name for people.  [default: the id]"),
        click.option("--max-running", type=click.IntRange(0), help="Tasks at a time; 0 = unlimited."),
        click.option("--max-queued", type=click.IntRange(0), help="Waiting tasks; 0 = unlimited."),
        click.option("--rate", type=click.IntRange(0), help="New tasks a second; 0 = unlimited."),
        click.option("--burst", type=click.IntRange(0), help="New tasks at once; 0 = unlimited."),
        click.option("--weight", type=click.IntRange(1, 1000), help="Share of the capacity."),
    )

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return add


@click.group(invoke_without_command=True)
@click.option("--filter", "filter_", default="", metavar="EXPRESSION", help="Only tenants that match.")
@output_option("table", "json", "yaml", "name", "jsonpath")
@click.pass_context
def tenants(context: click.Context, filter_: str, output: str) -> int | None:
    """List tenants; create, change or delete one.

    The columns RUNNING, QUEUED and PER SECOND are the limits in force.

    \b
    Examples:
      taskyard tenants
      taskyard tenants create acme --tier standard
      taskyard tenants update acme --tier premium --max-running 300
      taskyard tenants show acme
    """
    if context.invoked_subcommand is not None:
        return None

    async def print_all(client: Client) -> None:
        await print_list(client.admin.tenants(filter_), output, TITLES, _row, "No tenants.")

    return call(context.obj, print_all)


def _row(tenant: tenant_pb2.Tenant) -> tuple[str, ...]:
    quota = tenant.effective_quota
    return (
        last_segment(tenant.name),
        _tier(tenant),
        _state(tenant),
        limit(quota.max_concurrent_tasks),
        limit(quota.max_queue_depth),
        limit(quota.rate_limit_per_sec),
        screen.clean(tenant.display_name),
    )


def _tier(tenant: tenant_pb2.Tenant) -> str:
    return word(tenant_pb2.TenantTier, tenant.tier, "TENANT_TIER_")


def _state(tenant: tenant_pb2.Tenant) -> str:
    return "suspended" if tenant.suspended else "paused" if tenant.queue_paused else "open"


@tenants.command()
@click.argument("tenant", shell_complete=tenant_ids)
@output_option("text", "json", "yaml")
@exact_option
@with_client
async def show(client: Client, tenant: str, output: str, exact: bool) -> None:
    """Show a tenant, its quota and how much of it is used.

    \b
    Example:
      taskyard tenants show acme
    """
    found = await client.admin.get_tenant(tenant)
    if output != "text":
        printing.print_message(found, output)
    else:
        usage = await client.admin.tenant_usage(tenant)
        screen.print_fields(_fields(found, usage, exact))


def _fields(
    tenant: tenant_pb2.Tenant, usage: tenant_service_pb2.GetTenantUsageResponse, exact: bool
) -> Iterator[tuple[str, str]]:
    quota = usage.effective_quota
    yield "tenant", last_segment(tenant.name)
    yield "name", screen.clean(tenant.display_name)
    yield "tier", _tier(tenant)
    yield "state", _state(tenant)
    yield "running", f"{usage.active_tasks} of {limit(quota.max_concurrent_tasks)}"
    yield "queued", f"{usage.queued_tasks} of {limit(quota.max_queue_depth)}"
    now = "unlimited" if usage.rate_tokens < 0 else str(usage.rate_tokens)
    burst = f"{limit(quota.rate_burst)} at once"
    yield "new tasks", f"{limit(quota.rate_limit_per_sec)} a second, {burst}, {now} right now"
    yield "weight", str(quota.weight)
    yield "created", screen.format_time(to_datetime(tenant.create_time), exact)
    yield "changed", screen.format_time(to_datetime(tenant.update_time), exact)
    yield "version", str(tenant.resource_version)


@tenants.command()
@click.argument("tenant", shell_complete=tenant_ids)
@_changing(required=True)
@with_client
async def create(client: Client, /, tenant: str, **given: Any) -> None:
    """Create a tenant.

    \b
    Example:
      taskyard tenants create acme --tier standard --max-running 50
    """
    wanted, _ = _wanted(given)
    wanted.display_name = wanted.display_name or tenant
    await client.admin.create_tenant(tenant, wanted)
    click.echo(f"{tenant}  created")


@tenants.command()
@click.argument("tenant", shell_complete=tenant_ids)
@_changing(required=False)
@click.option("--suspend/--unsuspend", default=None, help="Refuse new tasks and start none.")
@click.option("--pause-queue/--resume-queue", default=None, help="Accept new tasks, but start none.")
@with_client
async def update(
    client: Client, /, tenant: str, suspend: bool | None, pause_queue: bool | None, **given: Any
) -> None:
    """Change a tenant.

    \b
    Examples:
      taskyard tenants update acme --tier premium
      taskyard tenants update acme --suspend
    """
    wanted, paths = _wanted(given)
    if suspend is not None:
        wanted.suspended = suspend
        paths.append("suspended")
    if pause_queue is not None:
        wanted.queue_paused = pause_queue
        paths.append("queue_paused")
    if not paths:
        raise click.UsageError("nothing to change; give an option")
    wanted.name = f"tenants/{tenant}"
    changed = await client.admin.update_tenant(wanted, *paths)
    click.echo(f"{tenant}  {_tier(changed)}, {_state(changed)}")


def _wanted(given: dict[str, Any]) -> tuple[tenant_pb2.Tenant, list[str]]:
    """The tenant that the options describe, and which of its fields they name."""
    tenant, paths = tenant_pb2.Tenant(), []
    if given["tier"]:
        tenant.tier = tenant_pb2.TenantTier.Value(f"TENANT_TIER_{given['tier'].upper()}")
        paths.append("tier")
    if given["display_name"]:
        tenant.display_name = given["display_name"]
        paths.append("display_name")
    for option, field in _QUOTAS.items():
        if given[option] is not None:
            setattr(tenant.quota, field, given[option])
            paths.append(f"quota.{field}")
    return tenant, paths


@tenants.command()
@click.argument("tenants_", nargs=-1, required=True, metavar="TENANT...", shell_complete=tenant_ids)
@click.option("--force", is_flag=True, help="With its task types and tasks.")
@yes_option
@with_client
async def delete(client: Client, tenants_: tuple[str, ...], force: bool, yes: bool) -> int:
    """Delete tenants permanently.

    \b
    Example:
      taskyard tenants delete acme
    """
    confirm(f"Delete {', '.join(tenants_)}{' with all tasks' if force else ''} permanently?", yes)

    async def remove(tenant: str) -> str:
        await client.admin.delete_tenant(tenant, force=force)
        return tenant

    return await for_each(client, tenants_, remove, lambda tenant: click.echo(f"{tenant}  deleted"))
