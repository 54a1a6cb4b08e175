"""The outbox of webhooks: filled with the transition that ends a task, emptied by the sender.

Writes webhooks and webhook_secrets.
"""
