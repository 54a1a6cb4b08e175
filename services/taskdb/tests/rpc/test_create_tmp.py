from taskyard.v1 import task_service_pb2 as s, task_pb2 as t
import pytest
async def test_many(taskdb, tenant, admin):
    def req(**k):
        r=s.CreateTaskRequest(parent="tenants/default", task=t.Task(spec=t.TaskSpec(execution=t.Execution(command=t.CommandExecution(program="true",args=["a","b"])))))
        for a,b in k.items(): setattr(r.task.spec,a,b)
        return r
    ts=[]
    for i in range(5):
        r=req(task_type=f"x{i%2}"); r.task.metadata.labels["k"]=f"v{i}"
        ts.append((await tenant.tasks.CreateTask(r)).task)
    async def ls(f="", who=tenant, **k):
        k.setdefault("parent","tenants/default")
        r=await who.tasks.ListTasks(s.ListTasksRequest(filter=f,**k)); return r
    def ids(r): return [ [x.name for x in ts].index(q.name) for q in r.tasks]
    print(ids(await ls()))
    print(ids(await ls('spec.task_type = x1')))
    print(ids(await ls('metadata.labels.k = "v2"')), ids(await ls('metadata.labels:k')), ids(await ls('NOT metadata.labels.k = "v*"')))
    print(ids(await ls('status.phase = PENDING AND NOT status.runner = "x"', order_by="metadata.create_time")))
    r=await ls(page_size=2,count_total=True); print(ids(r), r.total_size)
    r2=await ls(page_size=2,page_token=r.next_page_token); print(ids(r2))
    r3=await ls(page_size=2,page_token=r2.next_page_token); print(ids(r3), repr(r3.next_page_token))
    print(ids(await ls(parent="tenants/-")), ids(await ls(parent="tenants/-",who=admin,page_size=3)))
    c=await tenant.tasks.CancelTask(s.CancelTaskRequest(name=ts[0].name, reason="because"))
    print(c.task.status)
    p=await tenant.tasks.PauseTask(s.PauseTaskRequest(name=ts[1].name)); print(p.task.status)
    p=await tenant.tasks.ResumeTask(s.ResumeTaskRequest(name=ts[1].name)); print(p.task.status)
    p=await tenant.tasks.RetryTask(s.RetryTaskRequest(name=ts[0].name)); print(p.task.status)
    b=await tenant.tasks.BatchCancelTasks(s.BatchCancelTasksRequest(parent="tenants/default",filter="spec.task_type = x0")); print(b)
    print(ids(await ls("status.phase = TERMINAL", order_by="status.end_time")), ids(await ls("status.phase = TERMINAL", order_by="status.end_time desc", parent="tenants/-", who=admin)))
    await tenant.tasks.DeleteTask(s.DeleteTaskRequest(name=ts[0].name))
    with pytest.raises(Exception) as e: await tenant.tasks.DeleteTask(s.DeleteTaskRequest(name=ts[0].name))
    print(repr(e.value))
    with pytest.raises(Exception) as e: await tenant.tasks.DeleteTask(s.DeleteTaskRequest(name=ts[1].name))
    print(repr(e.value))
    print(await tenant.tasks.ListTaskRuns(s.ListTaskRunsRequest(parent=ts[1].name)))
    print(await tenant.tasks.CheckFence(s.CheckFenceRequest(name=ts[1].name,fencing_token="1.5")))
