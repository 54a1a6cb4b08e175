"""A named limit: calls for many customers, two at a time and one per customer; prints how many ran at once.

Run it while `taskyard up` runs.
"""

import asyncio

from taskyard import Client, Phase, command


async def main() -> None:
    """Creates the limit and six tasks, and waits for them."""
    async with Client() as client:
        limit = await client.limits.create("calls", max_running=2, max_running_per_key=1)
        created = [
            await client.create(command("sleep", "0.2", limits=[f"calls:customer-{number % 3}"]))
            for number in range(6)
        ]
        most = 0
        while (found := await client.limits.get("calls")).running_units or found.waiting_count:
            most = max(most, found.running_units)
            await asyncio.sleep(0.05)
        ended = [await client.wait(task) for task in created]
        succeeded = sum(task.phase is Phase.SUCCEEDED for task in ended)
        print(f"{succeeded} of {len(ended)} calls succeeded, at most {most} at a time")
        await client.limits.delete(limit.name)


if __name__ == "__main__":
    asyncio.run(main())
