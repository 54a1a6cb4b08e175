"""Where webhooks may go: public addresses, and networks that a setting allows.

What a name stands for is checked when it is dialled, at the very address that is dialled; a URL that names an
address itself is refused when the task is created.
"""

import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from urllib.parse import urlsplit

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# All of IPv6 that is routed between networks; the rest is reserved, local, or another spelling of IPv4.
_UNICAST = IPv6Network("2000::/3")
# IPv4 in IPv6, as NAT64 translates it.
_NAT64 = IPv6Network("64:ff9b::/96")
# Addresses that no receiver has, by IANA's special-purpose registries. Python is not asked, as what it calls
# global differs between versions. 168.63.129.16 is the platform's own address in a large public cloud.
_RESERVED = tuple(
    ip_network(network)
    for network in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "168.63.129.16/32",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.31.196.0/24",
        "192.52.193.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "192.175.48.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/3",
        "2001::/23",
        "2001:db8::/32",
        "2620:4f:8000::/48",
        "3fff::/20",
    )
)
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,253}")
_LOCAL_NAMES = ("localhost", ".localhost", ".local", ".internal")


@dataclass(frozen=True, slots=True)
class Egress:
    """The rule; `allowed` networks are reached although they are not public."""

    allowed: tuple[Network, ...] = ()

    @classmethod
    def parse(cls, networks: str) -> "Egress":
        """The rule that a comma-separated list of networks makes. Raises ValueError."""
        return cls(tuple(ip_network(word.strip()) for word in networks.split(",") if word.strip()))

    def permits(self, address: Address) -> bool:
        """Whether an address may be dialled."""
        if any(address in network for network in self.allowed):
            return True
        # An IPv4 address embedded in IPv6 is checked as the IPv4 address.
        inner = _translated(address)
        if inner is not None:
            return self.permits(inner)
        if isinstance(address, IPv6Address):
            relay = address.sixtofour
            routed = address in _UNICAST and not _is_reserved(address)
            return routed and (relay is None or self.permits(relay))
        return not _is_reserved(address)

    def problem(self, url: str) -> str | None:
        """Why a URL is refused, as far as that is decided without a name lookup; None if it is not."""
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError as error:
            return f"is not a URL: {error}"
        if parts.scheme.lower() not in ("http", "https") or not host:
            return "must be http:// or https:// with a host"
        if parts.username is not None or parts.password is not None:
            return "must not carry a user or password; use headers"
        if port == 0:
            return "must not name port 0"
        address = literal(host)
        if address is not None:
            return None if self.permits(address) else self._refusal(str(address))
        if not _NAME.fullmatch(host):
            return f"names no host: {host[:80]!r}"
        if not self.allowed and ("." + host.lower().rstrip(".")).endswith(tuple(_dotted(_LOCAL_NAMES))):
            return self._refusal(host)
        return None

    def choose(self, addresses: Iterable[Address]) -> list[Address]:
        """Those of a name's addresses that may be dialled, in their order."""
        return [address for address in dict.fromkeys(addresses) if self.permits(address)]

    def _refusal(self, host: str) -> str:
        return (
            f"must not lead to the internal address {host}; "
            "use a public one, or let the operator allow its network (webhook_networks)"
        )


def _is_reserved(address: Address) -> bool:
    return any(address in network for network in _RESERVED)


def literal(host: str) -> Address | None:
    """The address that a host spells out, in any notation that resolvers accept; None for a name."""
    host = host.partition("%")[0].removesuffix(".")
    try:
        return ip_address(host)
    except ValueError:
        pass
    try:
        # 127.1, 0x7f000001, 017700000001 and 2130706433 all are addresses of IPv4 to a resolver.
        return IPv4Address(socket.inet_aton(host)) if host[:1].isdigit() else None
    except OSError:
        return None


def _translated(address: Address) -> IPv4Address | None:
    """The address of IPv4 that this one is another spelling of."""
    if isinstance(address, IPv6Address) and (address.ipv4_mapped or address in _NAT64):
        return IPv4Address(address.packed[-4:])
    return None


def _dotted(names: Iterable[str]) -> list[str]:
    return [name if name.startswith(".") else f".{name}" for name in names]
