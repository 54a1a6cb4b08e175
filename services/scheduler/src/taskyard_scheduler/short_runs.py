"""A block of short runs on its way to taskdb: columns to pass on, and what became of its runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from google.protobuf.timestamp_pb2 import Timestamp

from taskyard.v1 import lease_pb2
from taskyard.v1.lease_service_pb2 import CompleteRunsRequest
from taskyard_scheduler import convert
from taskyard_scheduler.domain.capacity import RunKey
from taskyard_scheduler.report_entry import Entry, Rejection, Reporter

OPTIONAL_COLUMNS = ("exit_codes", "results", "log_sequences", "start_checkpoints")

# Which of the optional columns there are.
Shape = tuple[bool, ...]


class Block:
    """Short runs of one runner until taskdb has decided them.

    They are decided together, except those that are reported `alone`: the block waits for them.
    """

    __slots__ = (
        "_tenants",
        "alone",
        "answered",
        "count",
        "owner",
        "runner_id",
        "runs",
        "seq",
        "shape",
        "size",
    )

    def __init__(self, owner: Reporter, runner_id: str, runs: lease_pb2.ShortRuns, size: int) -> None:
        self.owner = owner
        self.runner_id = runner_id
        self.runs = runs
        self.count = len(runs.tasks)
        # Of the last run.
        self.seq = runs.first_seq + self.count - 1
        # Bytes of the runner's window that are free again once all are decided.
        self.size = size
        # Blocks of a runner that have the same columns can be joined.
        self.shape: Shape = tuple([bool(getattr(runs, name)) for name in OPTIONAL_COLUMNS])
        # By place.
        self.alone: dict[int, Entry] = {}
        self.answered = False
        self._tenants = Counter([task.split("/", 2)[1] for task in runs.tasks])

    @property
    def bytes(self) -> int:
        """What it adds to a call."""
        return self.size

    @property
    def keys(self) -> Iterable[RunKey]:
        """The names of its runs."""
        return zip(list(self.runs.tasks), list(self.runs.generations), strict=True)

    @property
    def decided(self) -> bool:
        """Whether taskdb has decided every run."""
        return self.answered and all(entry.decided for entry in self.alone.values())

    @property
    def ended(self) -> Counter[str]:
        """The runs by tenant that have ended with the block, without those that are reported alone."""
        if not self.alone:
            return self._tenants
        return self._tenants - Counter(entry.ends for entry in self.alone.values())

    def rejections(self) -> Iterator[Rejection]:
        """The runs that were not applied, in their order."""
        for _, entry in sorted(self.alone.items()):
            yield from entry.rejections()

    def reports_decided(self) -> None:
        """A run that was reported alone is decided."""
        if self.decided:
            self.owner.reports_decided()

    def single(self, place: int) -> Entry:
        """The report of one run, for which the block waits from now on."""
        report, ends = self._report(place), convert.tenant_of(self.runs.tasks[place])
        entry = Entry(self, self.runner_id, report, ends, report.seq)
        self.alone[place] = entry
        return entry

    def split(self) -> list[Entry]:
        """Reports in place of the block."""
        self.answered = True
        return [self.single(place) for place in range(self.count)]

    def _report(self, place: int) -> lease_pb2.RunReport:
        runs = self.runs
        lease = lease_pb2.LeaseRef(
            task=runs.tasks[place], generation=runs.generations[place], lease_id=runs.lease_ids[place]
        )
        report = lease_pb2.RunReport(
            lease=lease,
            seq=runs.first_seq + place,
            time=_time(runs.end_times[place]),
            start_time=_time(runs.start_times[place]),
            start=lease_pb2.RunStarted(),
            succeeded=lease_pb2.RunSucceeded(),
        )
        if runs.exit_codes:
            report.succeeded.exit_code = runs.exit_codes[place]
        if runs.results and (result := runs.results[place]):
            report.succeeded.result.ParseFromString(result)
        if runs.log_sequences:
            report.log_sequence = runs.log_sequences[place]
        if runs.start_checkpoints:
            report.start.checkpoint_sequence = runs.start_checkpoints[place]
        return report


class Joined:
    """The blocks of one call, those of a runner joined."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.request = CompleteRunsRequest()
        self._blocks: list[list[Block]] = []
        holders: dict[str, int] = {}
        for block in blocks:
            place = holders.setdefault(block.runner_id, len(holders))
            if place == len(self._blocks):
                self.request.holders.add(runner_id=block.runner_id, runs=block.runs)
                self._blocks.append([block])
            else:
                self.request.holders[place].runs.MergeFrom(block.runs)
                self._blocks[place].append(block)

    def single(self, holder: int, run: int) -> Entry:
        """The report of a run by its place in the call."""
        for block in self._blocks[holder]:
            if run < block.count:
                return block.single(run)
            run -= block.count
        raise IndexError(f"holder {holder} has no run {run}")


def _time(microseconds: int) -> Timestamp:
    seconds, rest = divmod(microseconds, 1_000_000)
    return Timestamp(seconds=seconds, nanos=rest * 1000)
