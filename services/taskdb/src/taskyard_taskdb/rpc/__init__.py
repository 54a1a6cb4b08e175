"""The handlers of taskdb's services, and the conversion between messages and stored values.

`server.py` composes each service of handlers (`service.compose`):

- TaskService: create, reads, actions, update, watch, logs, checkpoints, reports, audit, stats;
- LeaseService: claim, leases, reports, queue_watch, logs, checkpoints, create, explain_facts;
- a module each for the others: sessions, runners, tenants, task_types, api_keys, admin.

They share `spec`, `placement`, `type_rules`, `type_cache`, `json_schema`, `schema_checks` (with
`schema_processes` and `schema_worker`), `result_schema`, `webhooks` and
`validate`, which check and complete specs; `convert` and `times`, which make messages; `access`, `pages`,
`masks` and `ids` for names, page tokens, update masks and ids.
"""
