"""Taskyard over HTTP: JSON by the http rules of the protos, Server-Sent Events, and the Connect protocol."""
