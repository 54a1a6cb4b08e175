"""Instruments for the metrics of metric_names; without telemetry they are cheap no-ops."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from taskyard_kit.metric_names import Metric

Labels = Mapping[str, str]

_meter: Any = None
_instruments: dict[str, Instrument] = {}
_gauges: list[tuple[Metric, Callable[[], Iterable[tuple[float, Labels]]]]] = []


class Instrument:
    """One counter, up-down counter or histogram."""

    __slots__ = ("_record", "metric")

    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        self._record: Callable[[float, Labels], None] | None = None

    def add(self, value: float, labels: Labels) -> None:
        """Add to the counter, or record in the histogram."""
        if self._record is not None:
            self._record(value, labels)

    @property
    def active(self) -> bool:
        """Whether telemetry is enabled; a hot path can skip measuring otherwise."""
        return self._record is not None

    def _bind(self, meter: Any) -> None:
        metric = self.metric
        if metric.kind == "histogram":
            self._record = meter.create_histogram(
                metric.name,
                unit=metric.unit,
                description=metric.about,
                explicit_bucket_boundaries_advisory=metric.buckets,
            ).record
            return
        create = meter.create_counter if metric.kind == "counter" else meter.create_up_down_counter
        self._record = create(metric.name, unit=metric.unit, description=metric.about).add


def instrument(metric: Metric) -> Instrument:
    """The process's instrument for a metric; may be called before telemetry is set up."""
    if metric.name not in _instruments:
        made = _instruments[metric.name] = Instrument(metric)
        if _meter is not None:
            made._bind(_meter)
    return _instruments[metric.name]


def observe(metric: Metric, read: Callable[[], Iterable[tuple[float, Labels]]]) -> None:
    """Registers a gauge: `read` returns values with labels when metrics are collected, on another thread."""
    _gauges.append((metric, read))
    if _meter is not None:
        _bind_gauge(metric, read)


def enabled() -> bool:
    """Whether anything reads the metrics of this process."""
    return _meter is not None


def enable(meter: Any) -> None:
    """Connect all instruments, existing and future ones, to an OpenTelemetry meter."""
    global _meter
    _meter = meter
    for made in _instruments.values():
        made._bind(meter)
    for metric, read in _gauges:
        _bind_gauge(metric, read)


def _bind_gauge(metric: Metric, read: Callable[[], Iterable[tuple[float, Labels]]]) -> None:
    from opentelemetry.metrics import CallbackOptions, Observation

    def collect(options: CallbackOptions) -> Iterable[Observation]:
        return [Observation(value, dict(labels)) for value, labels in read()]

    _meter.create_observable_gauge(
        metric.name, callbacks=[collect], unit=metric.unit, description=metric.about
    )
