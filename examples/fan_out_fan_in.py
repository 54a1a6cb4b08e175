"""Dependencies: parts that run side by side, a task that adds up their results, and a clean-up."""

from taskyard import After, SyncClient, command

with SyncClient() as client:
    names = ("north", "south", "west")
    parts = client.create_all(
        command("sh", "-c", f'echo {len(name)} > "$TASKYARD_RESULT_FILE"', labels={"part": name})
        for name in names
    )
    add = """
total=0
for file in "$TASKYARD_INPUTS_DIR"/*.json; do total=$((total + $(cat "$file"))); done
echo "$total" > "$TASKYARD_RESULT_FILE"
"""
    total = client.create(
        command(
            "sh", "-c", add, after=[After(part, alias=name) for part, name in zip(parts, names, strict=True)]
        )
    )
    cleanup = client.create(command("echo", "done", after=[After(total, when="ended")]))
    print("the sum waits:", client.get(total).phase)
    assert client.wait(total, timeout=120).result == 14
    assert client.wait(cleanup, timeout=60).phase.name == "SUCCEEDED"
    print("the letters of all parts:", client.get(total).result)
