"""The one way to open a channel: key, TLS, retry and timeout by service config, keepalive, traceparent."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import grpc
import grpc.aio

from taskyard import tracing
from taskyard.context import PlaintextRefused
from taskyard.failover import FailoverChannel, split_addresses
from taskyard.service_config import retry_config, timeouts

MIB = 1024 * 1024
MAX_MESSAGE_BYTES = 4 * MIB
# What gRPC gives as the details of a call that this program itself has cancelled.
_ENDED_HERE = "Locally cancelled by application!"

# A half-open connection shows within 15 s. Servers allow pings twice as often (taskyard_kit.options).
KEEPALIVE_TIME_MS = 10_000
KEEPALIVE_TIMEOUT_MS = 5_000

Options = Sequence[tuple[str, Any]]


def client_channel_options(max_receive_bytes: int = MAX_MESSAGE_BYTES, *, retries: bool = True) -> Options:
    """Channel options that fit the servers' (taskyard_kit.options.server_options)."""
    return (
        ("grpc.service_config", retry_config()),
        ("grpc.service_config_disable_resolution", 1),
        ("grpc.enable_retries", int(retries)),
        ("grpc.keepalive_time_ms", KEEPALIVE_TIME_MS),
        ("grpc.keepalive_timeout_ms", KEEPALIVE_TIMEOUT_MS),
        # A watch may be idle for long: pings continue without data, but only while a call is open.
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.keepalive_permit_without_calls", 0),
        ("grpc.max_receive_message_length", max_receive_bytes),
        ("grpc.max_send_message_length", -1),
        # The default grows to two minutes, too long to wait for a server that is back.
        ("grpc.initial_reconnect_backoff_ms", 200),
        ("grpc.min_reconnect_backoff_ms", 1_000),
        ("grpc.max_reconnect_backoff_ms", 1_000),
    )


def is_local(address: str) -> bool:
    """Whether an address reaches this machine only: a unix socket, localhost or a loopback address."""
    if address.startswith(("unix:", "unix-abstract:")):
        return True
    host = address.removeprefix("ipv4:").removeprefix("ipv6:").removeprefix("dns:///").rpartition(":")[0]
    host = host.strip("[]")
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def refuse_plaintext(addresses: Sequence[str]) -> None:
    """Raise PlaintextRefused if one of the addresses is not on this machine."""
    for address in addresses:
        if not is_local(address):
            raise PlaintextRefused(
                f"{address} is not on this machine and would get the key in plaintext; use TLS:"
                " https:// before the address, or TASKYARD_TLS_CA"
            )


def proxy_options(address: str, *, tls: bool) -> Options:
    """Which proxy a channel uses: none in plaintext or on this machine, where the proxy would read the key.

    TLS passes a proxy unread. TASKYARD_PROXY names it (http://host:port) or switches it off; otherwise gRPC
    follows the variables grpc_proxy, https_proxy, http_proxy and no_proxy.
    """
    named = os.environ.get("TASKYARD_PROXY", "")
    if not tls or is_local(address) or named == "off":
        return (("grpc.enable_http_proxy", 0),)
    return (("grpc.http_proxy", named),) if named else ()


def open_channel(
    address: str,
    *,
    key: str = "",
    tls_ca: Path | None = None,
    tls: bool = False,
    allow_plaintext: bool = False,
    options: Options | None = None,
) -> grpc.aio.Channel:
    """A channel whose calls carry the key and the traceparent, with retries and timeouts by service config.

    A call's own `timeout` wins, also `timeout=None`. `address` may be a list of replicas separated by commas;
    calls go to the first that answers.

    TLS is used if `tls` or `tls_ca` is given. Raises PlaintextRefused for plaintext beyond this machine.
    """
    secure = tls or tls_ca is not None
    chosen = client_channel_options() if options is None else options
    headers = (("authorization", f"Bearer {key}"),) if key else ()
    credentials = None
    if secure:
        credentials = grpc.ssl_channel_credentials(tls_ca.read_bytes() if tls_ca is not None else None)
    addresses = split_addresses(address)
    if credentials is None and not allow_plaintext:
        refuse_plaintext(addresses)
    channels = [
        _Channel(
            _connect(each, credentials, (*chosen, *proxy_options(each, tls=secure))),
            headers,
        )
        for each in addresses
    ]
    return channels[0] if len(channels) == 1 else FailoverChannel(addresses, channels)


def _connect(address: str, credentials: grpc.ChannelCredentials | None, options: Options) -> grpc.aio.Channel:
    if credentials is None:
        return grpc.aio.insecure_channel(address, options=options)
    return grpc.aio.secure_channel(address, credentials, options=options)


calls_log = logging.getLogger("taskyard.calls")

_Headers = tuple[tuple[str, str], ...]


class _Channel(grpc.aio.Channel):
    """Adds headers and timeout to every call; an interceptor would cost a task per call."""

    def __init__(self, inner: grpc.aio.Channel, headers: _Headers) -> None:
        self._inner = inner
        self._headers = headers

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self._inner.close()

    async def close(self, grace: float | None = None) -> None:
        await self._inner.close(grace)

    def get_state(self, try_to_connect: bool = False) -> grpc.ChannelConnectivity:
        return self._inner.get_state(try_to_connect)

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:
        await self._inner.wait_for_state_change(last_observed_state)

    async def channel_ready(self) -> None:
        await self._inner.channel_ready()

    def unary_unary(self, method: str, *args: Any, **kwargs: Any) -> Any:
        return self._with_headers(method, self._inner.unary_unary(method, *args, **kwargs))

    def unary_stream(self, method: str, *args: Any, **kwargs: Any) -> Any:
        return self._with_headers(method, self._inner.unary_stream(method, *args, **kwargs))

    def stream_unary(self, method: str, *args: Any, **kwargs: Any) -> Any:
        return self._with_headers(method, self._inner.stream_unary(method, *args, **kwargs))

    def stream_stream(self, method: str, *args: Any, **kwargs: Any) -> Any:
        return self._with_headers(method, self._inner.stream_stream(method, *args, **kwargs))

    def _with_headers(self, method: str, inner: Callable[..., Any]) -> Callable[..., Any]:
        headers = self._headers
        name = method.lstrip("/")
        timeout = timeouts().get(method)

        def call(*args: Any, metadata: Sequence[tuple[str, str | bytes]] | None = None, **kwargs: Any) -> Any:
            sent = headers + tuple(metadata or ())
            kwargs.setdefault("timeout", timeout)
            if tracing.enabled():
                made = _traced_call(name, inner, sent, args, kwargs)
            else:
                if traceparent := tracing.current_traceparent():
                    sent += ((tracing.TRACEPARENT, traceparent),)
                made = inner(*args, metadata=sent, **kwargs)
            if calls_log.isEnabledFor(logging.DEBUG):
                _log_call(name, args[0] if args else None, made)
            return made

        # Read by those who decide whether the call may be repeated.
        call.method = method  # type: ignore[attr-defined]
        return call


def _log_call(name: str, request: Any, call: Any) -> None:
    """Log a call when it ends: its method, how it ended, how long it took, and its request id."""
    begin = time.perf_counter()

    async def log_end() -> None:
        code = await call.code()
        took = (time.perf_counter() - begin) * 1000
        request_id = getattr(request, "request_id", "")
        more = f" request_id={request_id}" if request_id else ""
        calls_log.debug("%s %s %.1f ms%s", name, code.name, took, more)

    call.add_done_callback(lambda _: asyncio.ensure_future(log_end()))


def _traced_call(
    name: str,
    inner: Callable[..., Any],
    headers: tuple[tuple[str, str | bytes], ...],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> Any:
    started = tracing.start_span(name, "", "client", {"rpc.system.name": "grpc", "rpc.method": name})
    sent = (*headers, (tracing.TRACEPARENT, tracing.traceparent_of(started)))
    call = inner(*args, metadata=sent, **kwargs)
    # The status of a finished call is available at once, but only a coroutine can read it.
    call.add_done_callback(lambda done: asyncio.ensure_future(_end_span(started, done)))
    return call


async def _end_span(started: Any, call: grpc.aio.Call) -> None:
    code = await call.code()
    started.set_attribute("rpc.response.status_code", code.name)
    # A reader that has all it wants ends its stream, which is no failure.
    if code is grpc.StatusCode.CANCELLED and await call.details() == _ENDED_HERE:
        started.end()
        return
    if code is not grpc.StatusCode.OK:
        tracing.mark_failed(started, code.name)
    started.end()
