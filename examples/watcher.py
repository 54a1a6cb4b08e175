"""Follows every change of every task; the resume token continues the watch after a restart."""

import asyncio

from taskyard import Client, command


async def follow(client: Client, token: str, until: str) -> str:
    """Prints changes until a task has ended; returns the token to resume from."""
    async for event in client.watch(resume_token=token, bookmarks=True):
        token = event.resume_token
        if event.task.id:
            print(f"{event.task.id} version {event.version}: {event.phase}")
        if event.task.id == until and event.phase.terminal:
            break
    return token


async def main() -> None:
    async with Client() as client:
        # A watch without a token begins now; the first bookmark carries the token of this moment.
        bookmarks = client.watch(bookmarks=True)
        token = (await anext(aiter(bookmarks))).resume_token
        await bookmarks.aclose()
        for name in ("first", "second"):
            # No watch is open while this task is created, and still none of its changes is missed.
            task = await client.create(command("echo", name))
            token = await follow(client, token, task.id)


asyncio.run(main())
