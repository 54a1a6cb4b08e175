"""Settings: a frozen dataclass, read once from flags, environment and defaults, checked together."""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, NoReturn, TypeVar, dataclass_transform, get_type_hints

from taskyard_kit.values import Secret, parser_of, show

EXIT_USAGE = 2


@dataclasses.dataclass(frozen=True)
class Problem:
    """A problem of one setting, and its remedy."""

    setting: str
    value: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.setting} = {self.value!r}: {self.remedy}"


class SettingsError(Exception):
    """Every problem of the settings at once; `str()` is one line for each."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))


def setting(
    default: Any = dataclasses.MISSING,
    *,
    help: str,
    env: str | None = None,
    min: Any = None,
    max: Any = None,
) -> Any:
    """A field of Settings; without a default it is required. Bounds are inclusive."""
    metadata = {"help": help, "env": env, "min": min, "max": max}
    return dataclasses.field(default=default, metadata=metadata)


@dataclass_transform(frozen_default=True, kw_only_default=True)
class _Frozen:
    """Turns each subclass into a frozen dataclass, so that a service only lists its fields."""

    def __init_subclass__(cls) -> None:
        dataclasses.dataclass(frozen=True, kw_only=True)(cls)


class Settings(_Frozen):
    """Base of every service's settings; each subclass is a frozen dataclass.

    A field `drain_timeout` of the service "taskdb" is the flag `--drain-timeout` and the environment
    variable TASKYARD_TASKDB_DRAIN_TIMEOUT, unless `setting(env=...)` names another.
    """

    service: ClassVar[str]
    about: ClassVar[str] = ""

    def check(self) -> Iterator[Problem]:
        """Yields conflicts between settings; a subclass yields its own after `yield from super().check()`."""
        yield from ()


S = TypeVar("S", bound=Settings)


@dataclasses.dataclass(frozen=True)
class _Spec:
    """One setting as flag, environment variable and typed value."""

    name: str
    kind: Any
    env: str
    flag: str
    default: Any
    help: str
    min: Any
    max: Any

    @property
    def required(self) -> bool:
        return self.default is dataclasses.MISSING

    def parse(self, text: str) -> Any:
        value = parser_of(self.kind)(text)
        if value is not None and self.min is not None and value < self.min:
            raise ValueError(f"at least {show(self.min)}")
        if value is not None and self.max is not None and value > self.max:
            raise ValueError(f"at most {show(self.max)}")
        return value


def _specs(cls: type[Settings]) -> list[_Spec]:
    hints = get_type_hints(cls)
    prefix = _prefix(cls)
    return [
        _Spec(
            name=field.name,
            kind=hints[field.name],
            env=field.metadata.get("env") or prefix + field.name.upper(),
            flag="--" + field.name.replace("_", "-"),
            default=field.default,
            help=field.metadata.get("help", ""),
            min=field.metadata.get("min"),
            max=field.metadata.get("max"),
        )
        for field in dataclasses.fields(cls)
    ]


def _prefix(cls: type[Settings]) -> str:
    return f"TASKYARD_{cls.service.upper()}_"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise SettingsError([f"{message}; see --help"])


def _build_parser(cls: type[Settings], specs: Sequence[_Spec]) -> _Parser:
    parser = _Parser(
        prog=f"taskyard-{cls.service}",
        description=cls.about,
        epilog="A flag overrides its environment variable, which overrides the default.",
        allow_abbrev=False,
        argument_default=argparse.SUPPRESS,
    )
    for spec in specs:
        default_text = "required" if spec.required else f"default {show(spec.default) or 'none'}"
        help_text = f"{spec.help} [{default_text}; {spec.env}]".replace("%", "%%")
        if spec.kind is bool:
            parser.add_argument(spec.flag, dest=spec.name, action="store_const", const="true", help=help_text)
            no_flag = "--no-" + spec.flag.removeprefix("--")
            parser.add_argument(
                no_flag, dest=spec.name, action="store_const", const="false", help=argparse.SUPPRESS
            )
        elif spec.kind == tuple[str, ...]:
            parser.add_argument(
                spec.flag, dest=spec.name, action="append", metavar="ITEM[,ITEM...]", help=help_text
            )
        else:
            parser.add_argument(spec.flag, dest=spec.name, metavar=_metavar(spec.kind), help=help_text)
    parser.add_argument("--print-config", action="store_true", help="print the effective settings and exit")
    return parser


def _metavar(kind: Any) -> str:
    name: str = getattr(kind, "__name__", "value")
    return {"str": "TEXT", "timedelta": "DURATION", "UnionType": "VALUE", "Literal": "CHOICE"}.get(
        name, name.upper()
    )


def load(cls: type[S], argv: Sequence[str], environ: Mapping[str, str]) -> S:
    """Reads the settings from flags, environment and defaults. Raises SettingsError with every problem found.

    `--help` and `--print-config` print and raise SystemExit(0).
    """
    specs = _specs(cls)
    parser = _build_parser(cls, specs)
    parsed, unknown = parser.parse_known_args(list(argv))
    given: dict[str, Any] = vars(parsed)
    print_config = given.pop("print_config", False)

    problems = [_unknown_argument(arg, specs) for arg in unknown]
    problems += _unknown_environment(cls, specs, environ)
    values: dict[str, Any] = {}
    source: dict[str, str] = {}
    for spec in specs:
        text, source[spec.name] = _find(spec, given, environ)
        if text is None:
            if spec.required:
                problems.append(f"{spec.name} is required: set {spec.flag} or {spec.env}")
            continue
        try:
            values[spec.name] = spec.parse(text)
        except ValueError as error:
            shown = "" if spec.kind is Secret else f" = {show(text)!r}"
            problems.append(f"{spec.name}{shown} (from {source[spec.name]}): must be {error}")
    if problems:
        raise SettingsError(problems)
    settings = cls(**values)
    if broken := [str(problem) for problem in settings.check()]:
        raise SettingsError(broken)
    if print_config:
        sys.stdout.write(render(settings, source))
        raise SystemExit(0)
    return settings


def load_or_exit(
    cls: type[S], argv: Sequence[str] | None = None, environ: Mapping[str, str] | None = None
) -> S:
    """Like load, from this process's arguments; a problem is a line on stderr and exit code 2."""
    try:
        return load(cls, sys.argv[1:] if argv is None else argv, os.environ if environ is None else environ)
    except SettingsError as error:
        for line in str(error).splitlines():
            sys.stderr.write(f"taskyard-{cls.service}: {line}\n")
        raise SystemExit(EXIT_USAGE) from None


def render(settings: Settings, source: Mapping[str, str] | None = None) -> str:
    """The effective settings, one per line with the source of each, secrets hidden."""
    specs = _specs(type(settings))
    lines = [f"{spec.name} = {show(getattr(settings, spec.name))}" for spec in specs]
    width = max(map(len, lines), default=0)
    origin = source or {}
    return "".join(
        f"{line:<{width}}  # {origin.get(spec.name, spec.env)}\n"
        for line, spec in zip(lines, specs, strict=True)
    )


def _find(spec: _Spec, given: Mapping[str, Any], environ: Mapping[str, str]) -> tuple[str | None, str]:
    if spec.name in given:
        found = given[spec.name]
        return (",".join(found) if isinstance(found, list) else found), spec.flag
    if spec.env in environ:
        return environ[spec.env], spec.env
    return None, "default"


def _unknown_argument(arg: str, specs: Sequence[_Spec]) -> str:
    if not arg.startswith("-"):
        return f"unexpected argument {arg!r}; settings are flags, see --help"
    name = arg.partition("=")[0]
    flags = [spec.flag for spec in specs] + ["--print-config", "--help"]
    return f"unknown flag {name}{_nearest(name, flags)}"


def _unknown_environment(
    cls: type[Settings], specs: Sequence[_Spec], environ: Mapping[str, str]
) -> Iterator[str]:
    variables = [spec.env for spec in specs]
    for name in sorted(environ):
        if name.startswith(_prefix(cls)) and name not in variables:
            yield f"unknown environment variable {name}{_nearest(name, variables)}"


def _nearest(name: str, candidates: Sequence[str]) -> str:
    found = difflib.get_close_matches(name, candidates, n=1, cutoff=0.5)
    return f"; did you mean {found[0]}?" if found else "; see --help"
