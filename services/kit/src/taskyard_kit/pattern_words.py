"""What the patterns of the protos allow, in words and with an example, for messages about rejected values."""

from __future__ import annotations

_ID = "letters, digits, dot, dash and underscore"

_WORDS = {
    "^tenants/[A-Za-z0-9._-]{1,64}$": f"must be tenants/ID with an id of 1 to 64 {_ID}, like tenants/default",
    "^tenants/[A-Za-z0-9._-]{1,64}/tasks/[A-Za-z0-9._-]{1,256}$": (
        f"must be tenants/TENANT/tasks/ID with an id of 1 to 256 {_ID}, like tenants/default/tasks/encode-17"
    ),
    "^(tenants/[A-Za-z0-9._-]{1,64}/tasks/[A-Za-z0-9._-]{1,256})?$": (
        f"must be empty or tenants/TENANT/tasks/ID with an id of 1 to 256 {_ID}, like tenants/default/tasks/a"
    ),
    "^[A-Za-z0-9._:@/+=-]{0,128}$": (
        "must be up to 128 letters, digits and . _ : @ / + = -, like customer-7"
    ),
    "^tenants/[A-Za-z0-9._-]{1,64}/limits/[A-Za-z0-9._-]{1,64}$": (
        f"must be tenants/TENANT/limits/ID with an id of 1 to 64 {_ID}, like tenants/default/limits/api"
    ),
    "^(tenants/[A-Za-z0-9._-]{1,64}/limits/)?[A-Za-z0-9._-]{1,64}$": (
        f"must be tenants/TENANT/limits/ID or the id alone, of 1 to 64 {_ID}, like api"
    ),
    "^tenants/[A-Za-z0-9._-]{1,64}/groups/[A-Za-z0-9._-]{1,265}$": (
        f"must be tenants/TENANT/groups/ID with an id of 1 to 265 {_ID}, like tenants/default/groups/nightly"
    ),
    "^((tenants/[A-Za-z0-9._-]{1,64}/groups/)?[A-Za-z0-9._-]{1,265})?$": (
        f"must be empty, tenants/TENANT/groups/ID or the id alone, of 1 to 265 {_ID}, like nightly"
    ),
    "^((tenants/[A-Za-z0-9._-]{1,64}/tasks/)?[A-Za-z0-9._-]{1,256})?$": (
        f"must be empty, tenants/TENANT/tasks/ID or the id alone, of 1 to 256 {_ID}, like encode-17"
    ),
    "^tenants/[A-Za-z0-9._-]{1,64}/schedules/[A-Za-z0-9._-]{1,55}$": (
        f"must be tenants/TENANT/schedules/ID with an id of 1 to 55 {_ID},"
        " like tenants/default/schedules/nightly"
    ),
    "^(tenants/[A-Za-z0-9._-]{1,64}/schedules/[A-Za-z0-9._-]{1,55})?$": (
        f"must be empty or tenants/TENANT/schedules/ID with an id of 1 to 55 {_ID},"
        " like tenants/default/schedules/nightly"
    ),
    "^tenants/[A-Za-z0-9._-]{1,64}/entityTypes/[A-Za-z0-9_-]{1,31}$": (
        "must be tenants/TENANT/entityTypes/TYPE with a type of 1 to 31 letters, digits, dash and underscore,"
        " like tenants/default/entityTypes/planner"
    ),
    "^tenants/[A-Za-z0-9._-]{1,64}/entityTypes/[A-Za-z0-9_-]{1,31}/entities/[A-Za-z0-9._-]{1,128}$": (
        f"must be tenants/TENANT/entityTypes/TYPE/entities/ID with an id of 1 to 128 {_ID},"
        " like tenants/default/entityTypes/planner/entities/p1"
    ),
    "^tenants/[A-Za-z0-9._-]{1,64}/taskTypes/[A-Za-z0-9._-]{1,128}$": (
        f"must be tenants/TENANT/taskTypes/ID with an id of 1 to 128 {_ID},"
        " like tenants/default/taskTypes/encode"
    ),
    "^tenants/[A-Za-z0-9._-]{1,64}/quarantines/[a-f0-9]{1,64}$": (
        "must be tenants/TENANT/quarantines/DIGEST as ListQuarantines shows it,"
        " like tenants/acme/quarantines/9f86d0"
    ),
    "^tenants/[A-Za-z0-9._-]{1,64}/tasks/[A-Za-z0-9._-]{1,256}/checkpoints/([0-9]{1,19}|latest)$": (
        "must be tenants/TENANT/tasks/ID/checkpoints/NUMBER or …/latest,"
        " like tenants/default/tasks/a/checkpoints/3"
    ),
    "^runners/[A-Za-z0-9._-]{1,128}$": (
        f"must be runners/ID with an id of 1 to 128 {_ID}, like runners/worker-1"
    ),
    "^apiKeys/[A-Za-z0-9-]{1,64}$": "must be apiKeys/ID with letters, digits and dash, like apiKeys/4f1c2b7a",
    "^embedded-[A-Za-z0-9._-]+$": f"must be embedded- followed by {_ID}, like embedded-4f1c2b7a",
    "^[A-Za-z0-9._-]+$": f"must be made of {_ID}, like encode-17",
    "^[A-Za-z0-9._-]*$": f"must be made of {_ID}, like encode-17, or be empty",
    "^[A-Za-z0-9_-]+$": "must be made of letters, digits, dash and underscore, like encode-17",
    "^[A-Za-z0-9-]*$": "must be made of letters, digits and dash, like encode-17, or be empty",
    "^[A-Za-z0-9._:-]*$": f"must be made of {_ID}, and colon, like host-1:8, or be empty",
    "^[A-Za-z0-9._-]*[*]?$": f"must be made of {_ID}, and may end with *, like worker-*",
    "^([A-Za-z0-9._-]+[*]?|[*])$": f"must be * or made of {_ID}, and may end with *, like encode-*",
    "^[A-Za-z0-9]([A-Za-z0-9._/-]*[A-Za-z0-9])?$": (
        "must begin and end with a letter or digit, with letters, digits, dot, dash, underscore and slash"
        " between, like team or example.com/team"
    ),
    "^[A-Za-z_][A-Za-z0-9_]*$": (
        "must be made of letters, digits and underscore and not begin with a digit, like PATH"
    ),
    "^[A-Za-z_][A-Za-z0-9_-]*([.][A-Za-z_][A-Za-z0-9_-]*)*$": (
        "must be names joined by dots, each of letters, digits, dash and underscore and not beginning with a"
        " digit or dash, like customer.region"
    ),
    "^([A-Za-z0-9_][A-Za-z0-9_.-]*)?$": (
        f"must be made of {_ID} and not begin with dot or dash, like encoded, or be empty"
    ),
    "^([A-Z][A-Z0-9_]*[A-Z0-9])?$": "must be made of capital letters, digits and underscore, like BAD_INPUT",
    "^(/[^\\x00]*)?$": "must be an absolute path, like /srv/data, or be empty",
    "^https?://": "must begin with http:// or https://, like https://example.com/hook",
    "^[0-9]{1,19}[.]-?[0-9]{1,19}$": "must be a fence as TASKYARD_FENCE holds it, like 3.12345",
}


def describe(pattern: str) -> str:
    """What a value must be; the pattern itself if it has no words."""
    return _WORDS.get(pattern) or f"must match the pattern {pattern}"
