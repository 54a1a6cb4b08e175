import asyncio, time, struct, os, uuid
from datetime import datetime, UTC, timedelta
from taskyard_taskdb.storage.pool import Pool, Tx
from taskyard_taskdb.storage import arrays as a
from taskyard_taskdb.storage.changes import LOG_LOCK

INS = """
WITH log AS MATERIALIZED (SELECT pg_advisory_xact_lock_shared(%(lock)s)),
input AS MATERIALIZED (
  SELECT i.*, statement_timestamp() - (%(count)s - i.ord) * interval '1 microsecond' AS now
  FROM unnest(%(uid)s::uuid[], %(task_id)s::text[], %(tenant)s::text[], %(class_id)s::bigint[], %(priority)s::smallint[], %(kind)s::smallint[], %(reason)s::smallint[],
   %(max_retries)s::int[], %(spec)s::bytea[], %(creator)s::text[], %(pinned)s::text[], %(task_type)s::text[], %(slot)s::text[], %(entity_type)s::text[], %(entity_id)s::text[], %(parent)s::text[], %(trace)s::text[], %(labels)s::text[],
   %(callback)s::bytea[], %(ann)s::bytea[], %(policy)s::bytea[], %(qt)s::interval[], %(nb)s::timestamptz[]) WITH ORDINALITY
   AS i (uid, task_id, tenant_id, class_id, priority, kind, reason, max_retries, spec, creator_id, pinned, task_type, slot, entity_type, entity_id, parent, trace, labels, callback, ann, policy, qt, nb, ord)),
made AS (INSERT INTO tasks (uid, task_id, tenant_id, class_id, priority, kind, pending_reason, phase, max_retries, spec, creator_type, creator_id, pinned_runner, task_type, slot, entity_type, entity_id, parent_task_id, traceparent, labels, callback, annotations, policy, create_time, update_time, ready_time, next_attempt_time)
  SELECT uid, task_id, tenant_id, class_id, priority, kind, reason, 1, max_retries, spec, 4, creator_id, pinned, task_type, slot, entity_type, entity_id, parent, trace, labels::jsonb, callback, ann, policy, now, now, CASE WHEN reason = 1 THEN now END, nb FROM input),
queued AS (INSERT INTO queue (tenant_id, class_id, priority, pinned_runner, ready_time, task_id) SELECT tenant_id, class_id, priority, pinned, now, task_id FROM input WHERE reason = 1),
timed AS (INSERT INTO timers (tenant_id, task_id, kind, due_time) SELECT tenant_id, task_id, 1, nb FROM input WHERE nb IS NOT NULL)
INSERT INTO changes (time, version, event, actor_type, phase, pending_reason, tenant_id, resource_id, actor_id)
SELECT now, 1, 1, 4, 1, reason, tenant_id, task_id, creator_id FROM log, input
RETURNING 1
"""
def cols(n, spec):
    ids=[uuid.UUID(bytes=struct.pack(">Q", time.time_ns()//1000)+os.urandom(8)) for _ in range(n)]
    ids.sort()
    N=[None]*n
    return dict(lock=LOG_LOCK, count=n, uid=a.uuids(ids), task_id=a.texts([str(i) for i in ids]), tenant=a.texts(["default"]*n), class_id=a.bigints([77]*n), priority=a.smallints([10]*n), kind=a.smallints([1]*n), reason=a.smallints([1]*n),
     max_retries=a.integers([3]*n), spec=a.byteas([spec]*n), creator=a.texts(["key1"]*n), pinned=a.texts([""]*n), task_type=a.texts([""]*n), slot=a.texts(N), entity_type=a.texts(N), entity_id=a.texts(N), parent=a.texts(N), trace=a.texts(N), labels=a.texts(N), callback=a.byteas(N), ann=a.byteas(N), policy=a.byteas(N), qt=a.intervals(N), nb=a.timestamps(N))

class Copy:
    def __init__(self, n): self.n=n
E5=b"\xff\xff\xff\xff"
def copy_rows_tasks(n, spec, now):
    EP=datetime(2000,1,1,tzinfo=UTC)
    t=int((now-EP)/timedelta(microseconds=1))
    P=struct.Struct("!h i16s i36s i7s iq ih ih ih ih ii ih i4s i0s i0s iq iq iq i")
    out=[];q=[];c=[]
    PQ=struct.Struct("!h i7s iq ih i0s iq i36s")
    PC=struct.Struct("!h iq iq ih ih ih ih i7s i36s i4s")
    for i in range(n):
        u=uuid.UUID(bytes=struct.pack(">Q", time.time_ns()//1000)+os.urandom(8))
        s=str(u).encode()
        out.append(P.pack(17,16,u.bytes,36,s,7,b"default",8,77,2,10,2,1,2,1,2,1,4,3,2,4,4,b"key1",0,b"",0,b"",8,t,8,t,8,t,len(spec))+spec)
        q.append(PQ.pack(6,7,b"default",8,77,2,10,0,b"",8,t,36,s))
        c.append(PC.pack(9,8,t,8,1,2,1,2,4,2,1,2,1,7,b"default",36,s,4,b"key1"))
    return b"".join(out),b"".join(q),b"".join(c)
H=b"PGCOPY\n\xff\r\n\0"+struct.pack("!ii",0,0)
T=struct.pack("!h",-1)
async def copyflush(conn,n,spec):
    now=datetime.now(UTC)
    t,q,c=copy_rows_tasks(n,spec,now)
    cur=conn.cursor()
    async with cur.copy("COPY tasks (uid, task_id, tenant_id, class_id, priority, kind, pending_reason, phase, max_retries, creator_type, creator_id, pinned_runner, task_type, create_time, update_time, ready_time, spec) FROM STDIN BINARY".replace("class_id,","class_id,")) as cp:
        await cp.write(H+t+T)
    async with cur.copy("COPY queue (tenant_id, class_id, priority, pinned_runner, ready_time, task_id) FROM STDIN BINARY") as cp:
        await cp.write(H+q+T)
    await cur.execute("select pg_advisory_xact_lock_shared(%s)",(LOG_LOCK,))
    async with cur.copy("COPY changes (time, version, event, actor_type, phase, pending_reason, tenant_id, resource_id, actor_id) FROM STDIN BINARY") as cp:
        await cp.write(H+c+T)
    await conn.commit()

async def test_proto(database_url):
    p=Pool(database_url); await p.open()
    spec=os.urandom(300)
    async def wal():
        async with p.reading() as tx: return (await tx.fetch_row("select pg_current_wal_lsn()-'0/0'::pg_lsn"))[0]
    for n,k in ((1000,20),(30,100),(1,200)):
        for name in ("unnest","copy","unnest","copy"):
            w0=await wal(); t0=time.perf_counter(); enc=0
            for _ in range(k):
                if name=="unnest":
                    e0=time.perf_counter(); c=cols(n,spec); enc+=time.perf_counter()-e0
                    async with p.transaction() as tx: await tx.execute(INS,c)
                else:
                    async with p._work.connection() as conn: await copyflush(conn,n,spec)
            dt=time.perf_counter()-t0
            print(n,name,f"{n*k/dt:.0f}/s  {dt/k*1e3:.2f} ms/flush enc {enc/k*1e3:.2f} wal/task {float(await wal()-w0)/(n*k):.0f}")
    await p.close()
