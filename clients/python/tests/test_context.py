"""Which server and key are used: the order of the layers, and that keys stay with their servers."""

import os
from pathlib import Path

import pytest

from taskyard import errors
from taskyard.cli.failure import explain
from taskyard.context import Context, ContextError, ContextExpired, find_context


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def home(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path / "home")}


def test_arguments_come_before_environment_before_files(tmp_path: Path) -> None:
    write(tmp_path / ".taskyard/context.toml", 'address = "file:1"\nkey = "k-file"\n')
    environment = home(tmp_path) | {"TASKYARD_ADDRESS": "env:1", "TASKYARD_KEY": "k-env"}
    given = {"address": "arg:1", "key": "k-arg"}

    assert find_context(given, environment, tmp_path).address == "arg:1"
    assert find_context(given, environment, tmp_path).key == "k-arg"
    assert find_context({}, environment, tmp_path).key == "k-env"
    found = find_context({}, home(tmp_path), tmp_path)
    assert (found.address, found.key, found.tenant) == ("file:1", "k-file", "")
    assert found.source == str(tmp_path / ".taskyard/context.toml")


def test_the_nearest_context_file_upwards_wins(tmp_path: Path) -> None:
    write(tmp_path / ".taskyard/context.toml", 'address = "far:1"\n')
    write(tmp_path / "a/.taskyard/context.toml", 'address = "near:1"\n')
    (tmp_path / "a/b/c").mkdir(parents=True)
    assert find_context({}, home(tmp_path), tmp_path / "a/b/c").address == "near:1"


def test_the_files_of_the_home_directory_come_last(tmp_path: Path) -> None:
    write(tmp_path / "home/.local/share/taskyard/context.toml", 'address = "up:1"\n')
    assert find_context({}, home(tmp_path), tmp_path).address == "up:1"
    write(tmp_path / "home/.config/taskyard/config.toml", 'address = "config:1"\n')
    assert find_context({}, home(tmp_path), tmp_path).address == "config:1"


def test_a_key_of_another_server_is_not_sent(tmp_path: Path) -> None:
    write(tmp_path / ".taskyard/context.toml", 'address = "here:1"\nkey = "k-here"\n')
    assert find_context({"address": "elsewhere:1"}, home(tmp_path), tmp_path).key == ""
    assert find_context({"address": "here:1"}, home(tmp_path), tmp_path).key == "k-here"


def test_a_key_is_sent_to_each_of_the_replicas_it_was_configured_with(tmp_path: Path) -> None:
    write(tmp_path / ".taskyard/context.toml", 'address = "a:1, b:1"\nkey = "k-file"\n')
    environment = home(tmp_path) | {"TASKYARD_ADDRESS": "c:1,d:1", "TASKYARD_KEY": "k-env"}
    for address, key in (
        ("b:1", "k-file"),
        ("b:1,a:1", "k-file"),
        ("d:1", "k-env"),
        ("a:1,c:1", ""),
        ("a:11", ""),
    ):
        found = find_context({"address": address}, environment, tmp_path)
        assert (found.address, found.key) == (address, key)


@pytest.mark.parametrize("variable", ["TASKYARD_KEY", "TASKYARD_ADMIN_KEY"])
def test_a_key_in_the_environment_is_not_sent_to_an_address_in_a_file(tmp_path: Path, variable: str) -> None:
    write(tmp_path / ".taskyard/context.toml", 'address = "here:1"\nkey = "k-here"\n')
    environment = home(tmp_path) | {variable: "k-env"}
    with pytest.raises(ContextError, match=f"{variable}.*TASKYARD_ADDRESS"):
        find_context({}, environment, tmp_path)
    found = find_context({}, environment | {"TASKYARD_ADDRESS": "here:1"}, tmp_path)
    assert "k-env" in (found.key, found.admin_key)
    assert find_context({"address": "here:1"}, environment, tmp_path).address == "here:1"


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_can_write_is_refused(tmp_path: Path, mode: int) -> None:
    file = tmp_path / ".taskyard/context.toml"
    write(file, 'address = "evil:1"\n')
    file.chmod(mode)
    with pytest.raises(ContextError, match="chmod go-w"):
        find_context({}, home(tmp_path), tmp_path)
    assert find_context({"address": "here:1"}, home(tmp_path), tmp_path).address == "here:1"


@pytest.mark.skipif(os.geteuid() != 0, reason="is about what root does")
def test_a_file_of_another_user_is_refused(tmp_path: Path) -> None:
    file = tmp_path / ".taskyard/context.toml"
    write(file, 'address = "evil:1"\n')
    os.chown(file, 54321, 54321)
    with pytest.raises(ContextError, match="belongs to user 54321"):
        find_context({}, home(tmp_path), tmp_path)


def test_an_administrators_key_goes_with_the_key_of_its_own_layer(tmp_path: Path) -> None:
    file = 'address = "here:1"\nkey = "k-here"\nadmin_key = "a-here"\n'
    write(tmp_path / ".taskyard/context.toml", file)
    assert find_context({}, home(tmp_path), tmp_path).admin_key == "a-here"
    assert find_context({"key": "k-arg"}, home(tmp_path), tmp_path).admin_key == ""
    expected = home(tmp_path) | {"TASKYARD_ADMIN_KEY": "a-env", "TASKYARD_ADDRESS": "here:1"}
    assert find_context({}, expected, tmp_path).admin_key == "a-env"


def test_the_key_is_not_shown(tmp_path: Path) -> None:
    assert "k-arg" not in repr(find_context({"address": "a:1", "key": "k-arg"}, {}, tmp_path))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("address = ", "cannot be read"),
        ('adress = "a"', "'adress'"),
        ("address = 5", "text in quotes"),
        ('expire_time = "2030-01-31"', "2030-01-31T12:00:00Z"),
    ],
)
def test_a_damaged_file_is_named(tmp_path: Path, text: str, expected: str) -> None:
    write(tmp_path / ".taskyard/context.toml", text)
    with pytest.raises(ContextError) as caught:
        find_context({}, home(tmp_path), tmp_path)
    assert expected in str(caught.value)
    assert "context.toml" in str(caught.value)


def test_an_expired_file_is_refused_unless_something_else_names_the_server(tmp_path: Path) -> None:
    write(tmp_path / ".taskyard/context.toml", 'address = "a:1"\nexpire_time = "2020-01-31T12:00:00Z"')
    with pytest.raises(ContextExpired, match=r"context\.toml expired at 2020-01-31T12:00:00Z"):
        find_context({}, home(tmp_path), tmp_path)
    assert find_context({"address": "b:1"}, home(tmp_path), tmp_path).address == "b:1"


def test_missing_server_names_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(ContextError, match="make up"):
        find_context({}, home(tmp_path), tmp_path)


def test_the_tenant_goes_with_the_key_of_its_own_layer(tmp_path: Path) -> None:
    file = 'address = "here:1"\nkey = "k-here"\nadmin_key = "a-here"\ntenant = "default"\n'
    write(tmp_path / ".taskyard/context.toml", file)
    assert find_context({"key": "k-acme"}, home(tmp_path), tmp_path).tenant == ""
    environment = home(tmp_path) | {"TASKYARD_KEY": "k-acme", "TASKYARD_ADDRESS": "here:1"}
    found = find_context({}, environment, tmp_path)
    assert (found.key, found.tenant) == ("k-acme", "")


def test_another_tenant_than_the_keys_is_accessed_with_the_administrators_key(tmp_path: Path) -> None:
    file = 'address = "here:1"\nkey = "k-here"\nadmin_key = "a-here"\ntenant = "default"\n'
    write(tmp_path / ".taskyard/context.toml", file)
    found = find_context({"tenant": "acme2"}, home(tmp_path), tmp_path)
    assert (found.key, found.tenant) == ("a-here", "acme2")
    assert find_context({"tenant": "default"}, home(tmp_path), tmp_path).key == "k-here"
    named = find_context({"tenant": "acme2", "key": "k-acme"}, home(tmp_path), tmp_path)
    assert (named.key, named.tenant) == ("k-acme", "acme2")


@pytest.mark.parametrize(
    "address", ["nonsense", "host:", "host:port", "a:99999", "http://a", "a b:1", "a:1,b"]
)
def test_an_address_that_is_none_is_named_with_its_source(tmp_path: Path, address: str) -> None:
    environment = home(tmp_path) | {"TASKYARD_ADDRESS": address}
    with pytest.raises(ContextError, match=r"from TASKYARD_ADDRESS\) is not host:port.*correct TASKYARD_A"):
        find_context({}, environment, tmp_path)


@pytest.mark.parametrize(
    "address",
    ["a:1", "[::1]:7420", "https://a", "https://a:1", "unix:/tmp/x", "ipv4:1.2.3.4:5,1.2.3.4:6", "a:1, b:2"],
)
def test_addresses_of_every_form_are_accepted(tmp_path: Path, address: str) -> None:
    assert find_context({"address": address}, home(tmp_path), tmp_path).address == address


def test_a_context_of_the_configuration_file_is_selected_by_name(tmp_path: Path) -> None:
    config = tmp_path / "home/.config/taskyard/config.toml"
    text = 'current = "b"\n[contexts.a]\naddress = "a:1"\n[contexts.b]\naddress = "b:1"\nkey = "k-b"\n'
    write(config, text)
    assert find_context({}, home(tmp_path), tmp_path).address == "b:1"
    assert find_context({}, home(tmp_path), tmp_path, name="a").address == "a:1"
    assert find_context({}, home(tmp_path) | {"TASKYARD_CONTEXT": "a"}, tmp_path).address == "a:1"
    write(tmp_path / ".taskyard/context.toml", 'address = "near:1"\n')
    assert find_context({}, home(tmp_path), tmp_path).address == "near:1"
    assert find_context({}, home(tmp_path), tmp_path, name="b").key == "k-b"
    with pytest.raises(ContextError, match="no context 'c', only: a, b"):
        find_context({}, home(tmp_path), tmp_path, name="c")
    write(config, 'current = "c"\n')
    with pytest.raises(ContextError, match="current = 'c' names no context"):
        find_context({}, home(tmp_path), tmp_path / "home")


def test_a_key_that_an_explicit_address_lacks_is_named() -> None:
    error = errors.Unauthenticated("no key")
    lacks = str(explain(error, Context("a:1", source="argument")))
    assert "only sent to the address that it was configured with" in lacks and "--key" in lacks
    assert "set TASKYARD_KEY" in str(explain(error, Context("a:1", source="TASKYARD_ADDRESS")))
