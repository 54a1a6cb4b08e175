"""TaskService, put together from its parts."""

from __future__ import annotations

from taskyard.v1 import task_service_pb2_grpc
from taskyard_taskdb.domain.egress import Egress
from taskyard_taskdb.rpc.actions import ActionMethods
from taskyard_taskdb.rpc.audit import AuditMethods
from taskyard_taskdb.rpc.checkpoints import CheckpointReading
from taskyard_taskdb.rpc.create import CreateMethods
from taskyard_taskdb.rpc.external import ReportMethods, read_report
from taskyard_taskdb.rpc.logs import LogReading
from taskyard_taskdb.rpc.reads import ReadMethods
from taskyard_taskdb.rpc.result_schema import ResultChecks
from taskyard_taskdb.rpc.spec import SpecReader
from taskyard_taskdb.rpc.stats import StatsCache, StatsMethods
from taskyard_taskdb.rpc.task_events import TaskEvents
from taskyard_taskdb.rpc.type_cache import TypeCache
from taskyard_taskdb.rpc.update import UpdateMethods
from taskyard_taskdb.rpc.watch import WatchMethods
from taskyard_taskdb.storage.actions import Actions
from taskyard_taskdb.storage.batch import Batcher
from taskyard_taskdb.storage.classes import ClassCache
from taskyard_taskdb.storage.create import AfterCommit, TaskCreator
from taskyard_taskdb.storage.edit import Editor
from taskyard_taskdb.storage.inbox import ReportInbox
from taskyard_taskdb.storage.newtask import CreateResult, NewTask
from taskyard_taskdb.storage.pool import Pool
from taskyard_taskdb.storage.tenants import TenantCache
from taskyard_taskdb.watch.followers import LogFollowers
from taskyard_taskdb.watch.hub import Hub


class TaskServicer(
    CreateMethods,
    ReadMethods,
    ActionMethods,
    UpdateMethods,
    ReportMethods,
    WatchMethods,
    LogReading,
    CheckpointReading,
    AuditMethods,
    StatsMethods,
    task_service_pb2_grpc.TaskServiceServicer,
):
    """TaskService."""

    def __init__(
        self,
        pool: Pool,
        after_commit: AfterCommit,
        hub: Hub,
        followers: LogFollowers,
        tenants: TenantCache,
        types: TypeCache,
        egress: Egress,
    ) -> None:
        self._pool = pool
        self._hub = hub
        self._followers = followers
        self._stats = StatsCache()
        self._events = TaskEvents(pool)
        hub.before_waking(self._events.prepare)
        self._tenants = tenants
        self._types = types
        self._specs = SpecReader(egress)
        self._actions = Actions(pool, after_commit)
        classes = ClassCache(pool)
        self._editor = Editor(pool, classes, after_commit)
        self._results = ResultChecks(pool, types)
        self._inbox = ReportInbox(pool, read_report, after_commit)
        self._creator = TaskCreator(pool, classes, after_commit)
        self._creates: Batcher[NewTask, CreateResult] = Batcher(
            self._creator.create_each, weigh=lambda task: len(task.spec)
        )

    @property
    def specs(self) -> SpecReader:
        """How specs are read here."""
        return self._specs

    async def close(self) -> None:
        """Finish what was accepted."""
        await self._creates.close()
