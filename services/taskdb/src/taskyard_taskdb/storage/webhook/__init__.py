"""The outbox of webhooks: written in the transaction that ends a task, deleted by the sender.

Writes webhooks and webhook_secrets.
"""
