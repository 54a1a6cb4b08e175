from taskyard.v1 import task_pb2 as t
from taskyard.v1 import task_service_pb2 as s


async def test_create_and_get(taskdb, tenant):
    r=s.CreateTaskRequest(parent="tenants/default", task=t.Task(spec=t.TaskSpec(execution=t.Execution(command=t.CommandExecution(program="true",args=["a","b"])))))
    a=await tenant.tasks.CreateTask(r)
    print(a)
    g=await tenant.tasks.GetTask(s.GetTaskRequest(name=a.task.name))
    assert g.task==a.task, g
    r.request_id="abc"; r.parent="tenants/default"
    a=await tenant.tasks.CreateTask(r)
    b=await tenant.tasks.CreateTask(r)
    print(b.outcome)
    assert a.task==b.task
    br=s.BatchCreateTasksRequest(parent="tenants/default",mode=1)
    for i in range(5):
        x=br.requests.add(); x.task.CopyFrom(r.task); x.task.spec.slot="a"
    z=await tenant.tasks.BatchCreateTasks(br)
    print(z)
    print(await taskdb.rows("select * from queue"))
    print(await taskdb.rows("select * from slots"))
    print(await taskdb.rows("select id, time, event,resource_id from changes"))
