"""Many tasks at a time: created in batches as fast as the server accepts them, then awaited together."""

import asyncio
import sys
from collections import Counter

from taskyard import Client, Created, command

COUNT = int(sys.argv[1]) if len(sys.argv) > 1 else 100


async def main() -> None:
    async with Client() as client:
        # A generator is enough: it is read only as fast as the server accepts tasks.
        tasks = (
            command("sh", "-c", f"echo thumbnail {n}", labels={"album": "holidays"}, priority=5)
            for n in range(COUNT)
        )
        made = [
            one
            async for one in client.create_many(
                tasks, progress=lambda count: print(f"{count} of {COUNT} created")
            )
            if isinstance(one, Created)
        ]
        phases: Counter[str] = Counter()
        async for task in client.wait_all(made):
            phases[task.phase.name] += 1
        print(dict(phases))
        assert phases == {"SUCCEEDED": COUNT}


asyncio.run(main())
