"""Coming from solti: commands in a slot, restarts with a back-off, and an embedded function."""

from _setting import apply_preset

from taskyard import SyncClient, command, words

apply_preset("solti")
with SyncClient() as client:
    new = command(
        "echo",
        "built",
        task_type="solti.task",
        slot="build",
        timeout=5.0,
        retry={
            "restart": "on_failure",
            "max_retries": 2,
            "initial": 1,
            "max": 30,
            "factor": 2,
            "jitter": "equal",
        },
    )
    new.validate()
    ended = client.wait(client.create(new), timeout=120)
    print(ended.phase, f"exit code {ended.exit_code}")
    try:
        command("true", admission="sometimes")  # type: ignore[typeddict-item]
    except words.UnknownAdmission as refused:
        print("refused before it is sent:", refused)
    embedded = client.run_embedded(lambda: 6 * 7, timeout=10, retry=0)
    print(embedded.phase, embedded.result)
