"""Commands about webhooks: the calls that wait for delivery, and the secret that signs them."""

from __future__ import annotations

import click

from taskyard.cli import screen
from taskyard.cli.lists import print_list
from taskyard.cli.printing import exact_option, output_option
from taskyard.cli.session import call, with_client
from taskyard.client import Client
from taskyard.convert import to_datetime
from taskyard.names import last_segment
from taskyard.v1.admin_service_pb2 import WebhookDelivery

TITLES = ("TASK", "TRIES", "SINCE", "NEXT", "URL", "LAST ERROR")


@click.group(invoke_without_command=True)
@output_option("table", "json", "yaml", "name", "jsonpath")
@exact_option
@click.pass_context
def webhooks(context: click.Context, output: str, exact: bool) -> int | None:
    """List webhook calls that wait; show the signing secret.

    A delivered call is no longer listed; one that was given up is in the audit log:
    `taskyard audit --type webhook.given_up`.

    \b
    Examples:
      taskyard webhooks
      taskyard webhooks secret
    """
    if context.invoked_subcommand is not None:
        return None

    async def print_all(client: Client) -> None:
        await print_list(
            client.admin.webhook_deliveries(),
            output,
            TITLES,
            lambda one: _row(one, exact),
            "No webhook calls wait for delivery.",
            name=lambda one: last_segment(one.task),
        )

    return call(context.obj, print_all)


def _row(delivery: WebhookDelivery, exact: bool) -> tuple[str, ...]:
    return (
        last_segment(delivery.task),
        str(delivery.attempt_count),
        screen.format_time(to_datetime(delivery.create_time), exact),
        screen.format_time(to_datetime(delivery.next_attempt_time), exact),
        screen.clean(delivery.url),
        screen.clean(delivery.last_error),
    )


@webhooks.command()
@click.option("--rotate", is_flag=True, help="Make a new one; calls are signed with both for 24 hours.")
@with_client
async def secret(client: Client, rotate: bool) -> None:
    """Print the secret that signs the tenant's webhooks.

    \b
    Examples:
      taskyard webhooks secret
      taskyard webhooks secret --rotate
    """
    click.echo(await client.admin.webhook_secret(rotate=rotate))
