"""`make conformance`: plays every behaviour in every language that is installed, and prints the table."""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import time

from tests.conformance.languages import LANGUAGES, Language
from tests.conformance.play import Verdict, features, play
from tests.conformance.table import Behaviour, behaviours
from tests.conformance.world import STALL_SECONDS, open_world

SIGNS = {True: "✓", False: "✗"}


def available(names: list[str], without: list[str]) -> list[Language]:
    """The chosen languages whose toolchain is there and whose driver builds; names the others."""
    found = []
    for language in LANGUAGES:
        if (names and language.name not in names) or language.name in without:
            continue
        if missing := language.missing():
            print(f"{language.name}: skipped, `{missing}` fails")
            continue
        begun = time.monotonic()
        language.prepare()
        print(f"{language.name}: driver ready in {time.monotonic() - begun:.0f} s", flush=True)
        found.append(language)
    return found


async def play_all(
    languages: list[Language], chosen: list[Behaviour], stall: float
) -> dict[tuple[str, str], Verdict]:
    """The verdict of each behaviour in each language."""
    verdicts: dict[tuple[str, str], Verdict] = {}
    async with open_world(stall) as world:
        for language in languages:
            offered = await features(language, world)
            for behaviour in chosen:
                verdict = await play(behaviour, language, offered, world)
                verdicts[behaviour.name, language.name] = verdict
                _progress(language, behaviour, verdict)
    return verdicts


def _progress(language: Language, behaviour: Behaviour, verdict: Verdict) -> None:
    if verdict.fault is None:
        return
    print(f"{SIGNS[not verdict.fault]} {language.name} {behaviour.name} {verdict.seconds:.1f} s", flush=True)
    if verdict.fault:
        print(f"  {verdict.fault}", flush=True)


def show(
    languages: list[Language], chosen: list[Behaviour], verdicts: dict[tuple[str, str], Verdict]
) -> None:
    """Print behaviour × language."""
    width = max(len(behaviour.name) for behaviour in chosen)
    print(f"\n{'':{width}}  " + "  ".join(f"{language.name:>10}" for language in languages))
    for behaviour in chosen:
        cells = [verdicts[behaviour.name, language.name] for language in languages]
        signs = ["–" if cell.fault is None else SIGNS[not cell.fault] for cell in cells]
        print(f"{behaviour.name:{width}}  " + "  ".join(f"{sign:>10}" for sign in signs))


def main() -> int:
    parser = argparse.ArgumentParser(prog="make conformance", description=__doc__)
    parser.add_argument("languages", nargs="*", help=", ".join(language.name for language in LANGUAGES))
    parser.add_argument("--without", action="append", default=[], help="leave this language out")
    parser.add_argument("--only", action="append", help="play this behaviour; may be repeated")
    parser.add_argument(
        "--stall", type=float, default=STALL_SECONDS, help="how long a stalled reader stalls, in seconds"
    )
    arguments = parser.parse_args()
    if unknown := set(arguments.languages) - {language.name for language in LANGUAGES}:
        parser.error(f"no such language: {', '.join(sorted(unknown))}")
    chosen = [one for one in behaviours() if not arguments.only or one.name in arguments.only]
    if not chosen:
        parser.error(f"no such behaviour: {', '.join(arguments.only)}")
    try:
        languages = available(arguments.languages, arguments.without)
    except subprocess.CalledProcessError as error:
        print(f"{' '.join(error.cmd)} failed with status {error.returncode}", file=sys.stderr)
        return 1
    verdicts = asyncio.run(play_all(languages, chosen, arguments.stall))
    show(languages, chosen, verdicts)
    failed = sum(bool(verdict.fault) for verdict in verdicts.values())
    print(
        f"\n{len(verdicts) - failed} of {len(verdicts)} as they should be"
        if failed
        else "\nall as they should be"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
