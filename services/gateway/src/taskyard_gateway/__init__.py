"""Taskyard over HTTP: JSON by the protos' http rules, streams as Server-Sent Events, and the Connect protocol."""
