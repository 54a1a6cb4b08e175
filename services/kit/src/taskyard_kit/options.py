"""Transport options of servers and clients; in one place because their keepalive settings must match."""

from __future__ import annotations

from taskyard.channel import (
    KEEPALIVE_TIME_MS,
    KEEPALIVE_TIMEOUT_MS,
    MAX_MESSAGE_BYTES,
    Options,
    client_channel_options,
)

__all__ = ["MAX_MESSAGE_BYTES", "client_channel_options", "server_options"]


def server_options(max_message_bytes: int = MAX_MESSAGE_BYTES, *, reuse_port: bool = False) -> Options:
    """Server options that fit `client_channel_options()`."""
    return (
        # By default gRPC shares a port silently; here a port in use is an error.
        ("grpc.so_reuseport", int(reuse_port)),
        ("grpc.max_receive_message_length", max_message_bytes),
        ("grpc.max_send_message_length", -1),
        ("grpc.max_metadata_size", 16 * 1024),
        # Thousands of runners may reconnect at once; gRPC's default limit would refuse some of them.
        ("grpc.server.max_pending_requests", 20_000),
        ("grpc.server.max_pending_requests_hard_limit", 40_000),
        # A dead connection is detected within 15 s.
        ("grpc.keepalive_time_ms", KEEPALIVE_TIME_MS),
        ("grpc.keepalive_timeout_ms", KEEPALIVE_TIMEOUT_MS),
        ("grpc.http2.max_pings_without_data", 0),
        # Clients ping every KEEPALIVE_TIME_MS; one that pings more than twice as often is disconnected.
        ("grpc.http2.min_ping_interval_without_data_ms", KEEPALIVE_TIME_MS // 2),
        ("grpc.keepalive_permit_without_calls", 1),
    )
