"""Draws the figures of `make bench-peers`: throughput, latency, cost and its growth with the backlog.

Runs in the peers' environment, as `python plot.py FIGURES.json PICTURE.png`.
"""

# mypy: ignore-errors
# matplotlib is in the peers' environment only, which the checks do not have.

import json
import statistics
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

OURS = "taskyard"
# Microseconds: the bars of those that cost many times as much would hide the others.
CHEAP = 500
COLOURS = {
    "taskyard": "#c2410c",
    "river": "#2563eb",
    "graphile": "#0d9488",
    "pgqueuer": "#7c3aed",
    "pgboss": "#64748b",
    "procrastinate": "#a16207",
    "celery": "#65a30d",
}


def main():
    """Read, draw, write."""
    figures, picture = sys.argv[1:]
    with open(figures) as file:
        results = json.load(file)
    plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False})
    sheet, axes = plt.subplots(2, 3, figsize=(13, 7.2), layout="constrained")
    (drain, creates, latency), (cost, growth_rate, growth_cpu) = axes
    bars(drain, results, "drain", "Drain of no-op tasks, tasks/s")
    bars(creates, results, "batch", "Batch create, tasks/s")
    spans(latency, results)
    stacked(cost, results)
    lines(growth_rate, results, "drain", "Drain by size of the backlog, tasks/s")
    lines(growth_cpu, results, "drain_cpu", "CPU of a drained task by backlog, µs")
    rounds = len(results["rounds"])
    low, high = min(results["loads"]), max(results["loads"])
    sheet.suptitle(
        f"{results['date']}, {results['cores']} cores, PostgreSQL with fsync and synchronous_commit on, "
        f"rounds: {rounds} (bars are medians, whiskers min and max), load average {low:g} to {high:g}",
        fontsize=9,
    )
    sheet.savefig(picture, dpi=110, metadata={"Software": None})


def values(results, system, metric):
    return [found[system][metric] for found in results["rounds"] if metric in found.get(system, {})]


def measured(results, metric):
    return [name for name in results["titles"] if values(results, name, metric)]


def bars(axis, results, metric, title):
    names = measured(results, metric)[::-1]
    for place, name in enumerate(names):
        found = values(results, name, metric)
        middle = statistics.median(found)
        spread = [[middle - min(found)], [max(found) - middle]]
        axis.barh(place, middle, xerr=spread, color=COLOURS[name], error_kw={"linewidth": 0.8, "capsize": 2})
        note(axis, f" {middle:,.0f}", max(found), place)
    label(axis, results, names, title)
    axis.margins(x=0.18)
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axis.locator_params(axis="x", nbins=5)


def spans(axis, results):
    names = measured(results, "p50")[::-1]
    for place, name in enumerate(names):
        middle, late = (statistics.median(values(results, name, metric)) for metric in ("p50", "p99"))
        axis.plot([middle, late], [place, place], color=COLOURS[name], linewidth=2)
        axis.plot(middle, place, "o", color=COLOURS[name])
        axis.plot(late, place, "|", color=COLOURS[name], markersize=11, markeredgewidth=2)
        axis.annotate(
            f" {middle:.1f} / {late:.1f}",
            (late, place),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
        )
    axis.set_xscale("log")
    axis.margins(x=0.3, y=0.1)
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    # Within a decade the numbers beside the bars say enough.
    axis.xaxis.set_minor_formatter(lambda value, _: "")
    label(axis, results, names, "Start at 100/s, ms: p50 / p99")


def stacked(axis, results):
    every = measured(results, "drain_cpu")[::-1]
    names = [name for name in every if statistics.median(values(results, name, "drain_cpu")) < CHEAP]
    for place, name in enumerate(names):
        parts = ("drain_cpu_programs", "drain_cpu_server")
        programs, server = (statistics.median(values(results, name, metric)) for metric in parts)
        axis.barh(place, programs, color=COLOURS[name])
        axis.barh(place, server, left=programs, color=COLOURS[name], alpha=0.45)
        note(axis, f" {programs:.0f} + {server:.0f}", programs + server, place)
    axis.margins(x=0.2)
    label(axis, results, names, f"CPU of a drained task below {CHEAP} µs: programs + server")


def note(axis, text, x, y):
    axis.annotate(text, (x, y), xytext=(3, 0), textcoords="offset points", va="center")


def label(axis, results, names, title):
    axis.set_yticks(range(len(names)), [results["titles"][name] for name in names])
    for tick, name in zip(axis.get_yticklabels(), names, strict=True):
        tick.set_fontweight("bold" if name == OURS else "normal")
    axis.set_title(title, loc="left", fontsize=10)


def lines(axis, results, metric, title):
    for name in results["titles"]:
        points = sorted(
            (item["backlog"], item[metric]) for item in results["growth"] if item["system"] == name
        )
        if points:
            width = 2.4 if name == OURS else 1.4
            style = {"color": COLOURS[name], "linewidth": width, "label": results["titles"][name]}
            axis.plot(*zip(*points, strict=True), "o-", markersize=4, **style)
    if not results["growth"]:
        axis.set_axis_off()
        return
    axis.set_xscale("log")
    axis.set_ylim(bottom=0)
    axis.legend(fontsize=8, frameon=False)
    axis.set_title(title, loc="left", fontsize=10)
    sizes = sorted({item["backlog"] for item in results["growth"]})
    axis.set_xticks(sizes, [f"{size:,.0f}" for size in sizes])
    axis.minorticks_off()
    axis.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")


main()
