//! The client: creates, reads, watches and controls tasks.

use std::{env, path::Path, sync::Arc, time::Duration};

use async_stream::try_stream;
use prost::Message;
use tokio::time::Instant;
use tokio_stream::{Stream, StreamExt};

use crate::{
    channel::{Channels, Server},
    context::{self, Context, Values},
    new_task::{new_request_id, NewTask},
    retry::RetryTimer,
    schedules::Schedules,
    stream::{responses, Resume, Sequences, Versions, WatchEvent, SILENCE, STREAM_LIMIT},
    tenant::Tenant,
    v1::{
        batch_create_tasks_result, explain_task_request::Subject, BatchCreateTasksRequest, BatchCreateTasksResponse,
        BatchMode, CancelTaskRequest, CancelTaskResponse, CreateTaskResponse, DeleteTaskRequest, DeleteTaskResponse,
        ExplainTaskRequest, ExplainTaskResponse, GetTaskRequest, GetTaskResponse, ListTaskRunsRequest,
        ListTaskRunsResponse, ListTasksRequest, ListTasksResponse, LogEntry, PauseTaskRequest, PauseTaskResponse,
        ReportTaskStatusRequest, ReportTaskStatusResponse, ResumeTaskRequest, ResumeTaskResponse, RetryTaskRequest,
        RetryTaskResponse, TailTaskLogsRequest, Task, TaskRun, WaitTaskRequest, WaitTaskResponse, WatchTasksRequest,
    },
    Error, Result,
};

// The longest wait of one WaitTask call, and the time for its response beyond that.
const WAIT: Duration = Duration::from_secs(60);
const RESPONSE: Duration = Duration::from_secs(15);

macro_rules! path {
    ($method:literal) => {
        concat!("/taskyard.v1.TaskService/", $method)
    };
}

/// How a client connects. What is not given comes from `TASKYARD_ADDRESS`, `TASKYARD_KEY` and so on, then from
/// `.taskyard/context.toml` in this folder or one above, then from `~/.config/taskyard/config.toml`.
#[derive(Clone, Default)]
pub struct Options {
    given: Values,
    timeout: Option<Duration>,
    outage_timeout: Option<Duration>,
}

impl Options {
    pub fn new() -> Self {
        Self::default()
    }

    fn set(mut self, name: &str, value: &str) -> Self {
        if !value.is_empty() {
            self.given.insert(name.to_owned(), value.to_owned());
        }
        self
    }

    /// taskdb as host:port; several replicas are separated by commas. "https://" in front means TLS.
    #[must_use]
    pub fn address(self, value: &str) -> Self {
        self.set("address", value)
    }

    /// The scheduler as host:port.
    #[must_use]
    pub fn scheduler(self, value: &str) -> Self {
        self.set("scheduler", value)
    }

    #[must_use]
    pub fn key(self, value: &str) -> Self {
        self.set("key", value)
    }

    /// The key for administrative calls.
    #[must_use]
    pub fn admin_key(self, value: &str) -> Self {
        self.set("admin_key", value)
    }

    /// The tenant whose tasks the client names; without it the one of the context, then that of the key.
    #[must_use]
    pub fn tenant(self, value: &str) -> Self {
        self.set("tenant", value)
    }

    /// File with the certificates of the CA; its presence means TLS.
    #[must_use]
    pub fn tls_ca(self, value: &str) -> Self {
        self.set("tls_ca", value)
    }

    /// Replaces the timeout per method of `service_config.json`.
    #[must_use]
    pub fn timeout(mut self, value: Duration) -> Self {
        self.timeout = Some(value);
        self
    }

    /// How long watch, logs and wait retry while the server cannot be reached; 5 minutes by default.
    #[must_use]
    pub fn outage_timeout(mut self, value: Duration) -> Self {
        self.outage_timeout = Some(value);
        self
    }

    /// The client; it connects with its first call.
    pub fn connect(self) -> Result<Client> {
        let here = env::current_dir().unwrap_or_else(|_| Path::new("/").to_owned());
        let context = context::find(&self.given, &|name| env::var(name).ok(), &here)?;
        Ok(Client {
            tenant: Arc::default(),
            channels: Arc::new(Channels::new(context, self.timeout)?),
            outage: self.outage_timeout.unwrap_or(Duration::from_secs(300)),
        })
    }
}

/// A connection to Taskyard; a clone shares it. A task is given by its id or full name.
#[derive(Clone)]
pub struct Client {
    channels: Arc<Channels>,
    outage: Duration,
    tenant: Arc<Tenant>,
}

impl Client {
    /// A client of the context that is found, see [`Options`].
    pub fn connect() -> Result<Self> {
        Options::new().connect()
    }

    /// The effective servers and keys.
    pub fn context(&self) -> &Context {
        &self.channels.context
    }

    /// Any unary method, such as `/taskyard.v1.TaskService/GetTaskStats`, with the key, deadline, retries and errors of
    /// this client.
    pub async fn call<Q, R>(&self, server: Server, path: &'static str, request: Q) -> Result<R>
    where
        Q: Message + Clone + 'static,
        R: Message + Default + 'static,
    {
        // On the heap: a request is large, and callers hold the future on their stacks.
        Box::pin(self.channels.unary(server, path, request, None)).await
    }

    /// Creates a task; when this returns it is stored durably. A retry inside creates no second task.
    pub async fn create(&self, task: NewTask) -> Result<CreateTaskResponse> {
        let request = task.into_request(&self.parent().await?);
        self.call(Server::Taskdb, path!("CreateTask"), request).await
    }

    /// Creates up to 1000 tasks in one call; for each, in order, the created task or its error.
    pub async fn create_all(
        &self,
        tasks: impl IntoIterator<Item = NewTask>,
    ) -> Result<Vec<Result<CreateTaskResponse>>> {
        let request = BatchCreateTasksRequest {
            parent: self.parent().await?,
            requests: tasks.into_iter().map(|task| task.into_request("")).collect(),
            mode: BatchMode::PerItem.into(),
            ..Default::default()
        };
        let response: BatchCreateTasksResponse = self.call(Server::Taskdb, path!("BatchCreateTasks"), request).await?;
        let results = response.results.into_iter().map(|item| match item.result {
            Some(batch_create_tasks_result::Result::Created(created)) => Ok(created),
            Some(batch_create_tasks_result::Result::Error(status)) => Err(Error::from_item(&status)),
            None => Err(Error::unavailable("the server left an item out")),
        });
        Ok(results.collect())
    }

    /// A task.
    pub async fn get(&self, task: &str) -> Result<Task> {
        let request = GetTaskRequest { name: self.name(task).await?, ..Default::default() };
        let response: GetTaskResponse = self.call(Server::Taskdb, path!("GetTask"), request).await?;
        Ok(response.task.unwrap_or_default())
    }

    /// Tasks that match a filter such as `metadata.labels.team = "a"`, newest first; pages of `page_size` (0: the
    /// server's default) are fetched as they are read.
    pub fn list(&self, filter: &str, page_size: i32) -> impl Stream<Item = Result<Task>> {
        let client = self.clone();
        let filter = filter.to_owned();
        let mut request = ListTasksRequest { filter, page_size, ..Default::default() };
        try_stream! {
            request.parent = client.parent().await?;
            loop {
                let page: ListTasksResponse =
                    client.call(Server::Taskdb, path!("ListTasks"), request.clone()).await?;
                for task in page.tasks {
                    yield task;
                }
                if page.next_page_token.is_empty() {
                    break;
                }
                request.page_token = page.next_page_token;
            }
        }
    }

    /// The runs of a task, newest first.
    pub fn runs(&self, task: &str) -> impl Stream<Item = Result<TaskRun>> {
        let client = self.clone();
        let task = task.to_owned();
        try_stream! {
            let mut request = ListTaskRunsRequest { parent: client.name(&task).await?, ..Default::default() };
            loop {
                let page: ListTaskRunsResponse =
                    client.call(Server::Taskdb, path!("ListTaskRuns"), request.clone()).await?;
                for run in page.runs {
                    yield run;
                }
                if page.next_page_token.is_empty() {
                    break;
                }
                request.page_token = page.next_page_token;
            }
        }
    }

    /// Why a task does not run.
    pub async fn explain(&self, task: &str) -> Result<ExplainTaskResponse> {
        let subject = Some(Subject::Name(self.name(task).await?));
        let request = ExplainTaskRequest { parent: self.parent().await?, subject };
        self.call(Server::Scheduler, "/taskyard.v1.ExplainService/ExplainTask", request).await
    }

    /// The task once it has ended; [`Error::WaitTimeout`] after `limit`. Retries over outages.
    pub async fn wait(&self, task: &str, limit: Option<Duration>) -> Result<Task> {
        let ends = limit.map(|limit| Instant::now() + limit);
        let mut timer = RetryTimer::new(self.outage);
        loop {
            let left = ends.map_or(WAIT, |ends| ends.saturating_duration_since(Instant::now()).min(WAIT));
            let response = match self.wait_once(task, left).await {
                Ok(response) => response,
                Err(error) => {
                    timer.wait(error).await?;
                    continue;
                }
            };
            timer.refresh();
            let found = response.task.unwrap_or_default();
            if response.satisfied {
                return Ok(found);
            }
            if ends.is_some_and(|ends| Instant::now() >= ends) {
                let phase = found.status.unwrap_or_default().phase();
                let phase = phase.as_str_name().trim_start_matches("TASK_PHASE_").to_owned();
                let limit = limit.unwrap_or_default();
                return Err(Error::WaitTimeout(format!("{task} is still {phase} after {limit:?}")));
            }
        }
    }

    async fn wait_once(&self, task: &str, limit: Duration) -> Result<WaitTaskResponse> {
        let timeout = prost_types::Duration::try_from(limit).ok();
        let request = WaitTaskRequest { name: self.name(task).await?, timeout, ..Default::default() };
        self.channels.unary(Server::Taskdb, path!("WaitTask"), request, Some(limit + RESPONSE)).await
    }

    /// Every change of one task from its current state until it has ended.
    pub fn watch_task(&self, task: &str) -> impl Stream<Item = Result<WatchEvent>> {
        self.watch(WatchTasksRequest {
            names: vec![task.to_owned()],
            snapshot: true,
            until_terminal: true,
            ..Default::default()
        })
    }

    /// Every change that the request selects, once and in order, over broken connections and restarts of the server;
    /// parent and short names are filled in. An error with code `OUT_OF_RANGE` means that the history after the token is
    /// gone.
    pub fn watch(&self, request: WatchTasksRequest) -> impl Stream<Item = Result<WatchEvent>> {
        let resume = Resume {
            token: request.resume_token.clone(),
            endless: !request.until_terminal,
            silence: SILENCE,
            outage: self.outage,
        };
        let mut token = request.resume_token.clone();
        let client = self.clone();
        let source = responses(resume, move |resume_token| {
            let client = client.clone();
            let mut request = request.clone();
            request.snapshot = request.snapshot && resume_token.is_empty();
            request.resume_token = resume_token;
            async move {
                request.parent = client.parent().await?;
                for task in &mut request.names {
                    *task = client.name(task).await?;
                }
                client.channels.server_stream(Server::Taskdb, path!("WatchTasks"), request).await
            }
        });
        try_stream! {
            let mut versions = Versions::default();
            tokio::pin!(source);
            while let Some(response) = source.next().await {
                for event in versions.events(response?, &mut token) {
                    yield event;
                }
            }
        }
    }

    /// The output of a task; with `follow` until it has ended. Resumes without gaps or repeats.
    pub fn logs(&self, task: &str, follow: bool) -> impl Stream<Item = Result<LogEntry>> {
        self.tail(TailTaskLogsRequest { parent: task.to_owned(), follow, ..Default::default() })
    }

    /// The output that the request selects.
    pub fn tail(&self, request: TailTaskLogsRequest) -> impl Stream<Item = Result<LogEntry>> {
        let token = request.resume_token.clone();
        let resume = Resume { token, endless: false, silence: STREAM_LIMIT, outage: self.outage };
        let client = self.clone();
        let source = responses(resume, move |resume_token| {
            let client = client.clone();
            let mut request = TailTaskLogsRequest { resume_token, ..request.clone() };
            async move {
                request.parent = client.name(&request.parent).await?;
                client.channels.server_stream(Server::Taskdb, path!("TailTaskLogs"), request).await
            }
        });
        try_stream! {
            let mut sequences = Sequences::default();
            tokio::pin!(source);
            while let Some(response) = source.next().await {
                for entry in sequences.entries(response?) {
                    yield entry;
                }
            }
        }
    }

    /// Requests cancellation; no new attempt starts after this returns. Repeating it is safe.
    pub async fn cancel(&self, task: &str, reason: &str) -> Result<Task> {
        let reason = reason.to_owned();
        let request = CancelTaskRequest { name: self.name(task).await?, reason, ..Default::default() };
        let response: CancelTaskResponse = self.call(Server::Taskdb, path!("CancelTask"), request).await?;
        Ok(response.task.unwrap_or_default())
    }

    /// Requests a pause; the workload may write a checkpoint before it stops. Repeating it is safe.
    pub async fn pause(&self, task: &str, reason: &str) -> Result<Task> {
        let reason = reason.to_owned();
        let request = PauseTaskRequest { name: self.name(task).await?, reason, ..Default::default() };
        let response: PauseTaskResponse = self.call(Server::Taskdb, path!("PauseTask"), request).await?;
        Ok(response.task.unwrap_or_default())
    }

    /// Resumes a paused task. Repeating it is safe.
    pub async fn resume(&self, task: &str) -> Result<Task> {
        let request = ResumeTaskRequest { name: self.name(task).await?, ..Default::default() };
        let response: ResumeTaskResponse = self.call(Server::Taskdb, path!("ResumeTask"), request).await?;
        Ok(response.task.unwrap_or_default())
    }

    /// Runs a task that ended without success again, from its latest checkpoint.
    pub async fn retry(&self, task: &str) -> Result<Task> {
        let request_id = new_request_id();
        let request = RetryTaskRequest { name: self.name(task).await?, request_id, ..Default::default() };
        let response: RetryTaskResponse = self.call(Server::Taskdb, path!("RetryTask"), request).await?;
        Ok(response.task.unwrap_or_default())
    }

    /// Deletes an ended task with its runs and logs; its audit trail is kept.
    pub async fn delete(&self, task: &str) -> Result<()> {
        let request = DeleteTaskRequest { name: self.name(task).await?, ..Default::default() };
        let _: DeleteTaskResponse = self.call(Server::Taskdb, path!("DeleteTask"), request).await?;
        Ok(())
    }

    /// Reports the status of an external task, as its owner; name and request id are filled in.
    pub async fn report(&self, task: &str, mut report: ReportTaskStatusRequest) -> Result<Task> {
        report.name = self.name(task).await?;
        report.request_id = new_request_id();
        let response: ReportTaskStatusResponse = self.call(Server::Taskdb, path!("ReportTaskStatus"), report).await?;
        Ok(response.task.unwrap_or_default())
    }

    /// The schedules of the tenant: tasks that are created by time.
    pub fn schedules(&self) -> Schedules {
        Schedules::new(self.clone())
    }

    /// The tenant of the context; where it names none, that of the key.
    pub async fn tenant(&self) -> Result<String> {
        self.tenant.id(&self.channels).await.map(str::to_owned)
    }

    pub(crate) async fn parent(&self) -> Result<String> {
        Ok(format!("tenants/{}", self.tenant.id(&self.channels).await?.trim_start_matches("tenants/")))
    }

    async fn name(&self, task: &str) -> Result<String> {
        if task.starts_with("tenants/") {
            return Ok(task.to_owned());
        }
        Ok(format!("{}/tasks/{task}", self.parent().await?))
    }
}
