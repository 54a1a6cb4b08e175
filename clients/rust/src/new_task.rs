//! Tasks that are yet to be created.

use std::time::Duration;

use rand::Rng;
use serde::Serialize;

use crate::v1::{
    execution::Kind, payload, CommandExecution, ContainerExecution, CreateTaskRequest, Dependency, EnvVar, Execution,
    ExternalExecution, FunctionExecution, Interpreter, Payload, RetryPolicy, ScriptExecution, TaskSpec,
};

/// A task to create. Its methods set the usual options; `request` is the message that is sent, for every other field.
#[derive(Clone, Debug, Default)]
pub struct NewTask {
    pub request: CreateTaskRequest,
}

impl NewTask {
    fn of(kind: Kind) -> Self {
        Self::default().spec(|spec| spec.execution = Some(Execution { kind: Some(kind) }))
    }

    /// A program on the runner's host, started without a shell.
    pub fn command<I: Into<String>>(program: &str, args: impl IntoIterator<Item = I>) -> Self {
        let args = args.into_iter().map(Into::into).collect();
        Self::of(Kind::Command(CommandExecution { program: program.to_owned(), args, ..Default::default() }))
    }

    /// A script on the runner's host.
    pub fn script(interpreter: Interpreter, body: &str) -> Self {
        let interpreter = interpreter.into();
        Self::of(Kind::Script(ScriptExecution { interpreter, body: body.into(), ..Default::default() }))
    }

    /// A function that a worker or a runner's application has registered.
    pub fn function(name: &str) -> Self {
        Self::of(Kind::Function(FunctionExecution { function: name.to_owned() }))
    }

    /// An OCI container; `args` go to its entry point.
    pub fn container<I: Into<String>>(image: &str, args: impl IntoIterator<Item = I>) -> Self {
        let args = args.into_iter().map(Into::into).collect();
        Self::of(Kind::Container(ContainerExecution { image: image.to_owned(), args, ..Default::default() }))
    }

    /// Work that its owner executes and reports; no runner is involved.
    pub fn external() -> Self {
        Self::of(Kind::External(ExternalExecution::default()))
    }

    /// A task of a registered type; the type defines what is executed.
    pub fn typed(task_type: &str) -> Self {
        Self::default().spec(|spec| task_type.clone_into(&mut spec.task_type))
    }

    /// The caller's own id; the server makes one otherwise.
    #[must_use]
    pub fn id(mut self, id: &str) -> Self {
        id.clone_into(&mut self.request.task_id);
        self
    }

    /// Repeating a create with it returns the first task; made by the client otherwise.
    #[must_use]
    pub fn request_id(mut self, request_id: &str) -> Self {
        request_id.clone_into(&mut self.request.request_id);
        self
    }

    /// A label to find the task by.
    #[must_use]
    pub fn label(mut self, name: &str, value: &str) -> Self {
        let task = self.request.task.get_or_insert_default();
        task.metadata.get_or_insert_default().labels.insert(name.to_owned(), value.to_owned());
        self
    }

    /// A variable of the workload's environment.
    #[must_use]
    pub fn env(self, name: &str, value: &str) -> Self {
        self.spec(|spec| spec.env.push(EnvVar { name: name.to_owned(), value: value.to_owned() }))
    }

    /// The input, see [`json_payload`].
    #[must_use]
    pub fn payload(self, payload: Payload) -> Self {
        self.spec(|spec| spec.payload = Some(payload))
    }

    /// 0 to 1000, higher first.
    #[must_use]
    pub fn priority(self, priority: i32) -> Self {
        self.spec(|spec| spec.priority = Some(priority))
    }

    /// How often an unsuccessful task is retried.
    #[must_use]
    pub fn retries(self, count: i32) -> Self {
        self.spec(|spec| spec.retry = Some(RetryPolicy { max_retries: Some(count), ..Default::default() }))
    }

    /// A task that has to succeed first, by id or full name.
    #[must_use]
    pub fn after(self, task: &str) -> Self {
        self.dependency(Dependency { task: task.to_owned(), ..Default::default() })
    }

    /// A task that has to end first, with its condition and the alias under which its result reaches the workload.
    #[must_use]
    pub fn dependency(self, prerequisite: Dependency) -> Self {
        self.spec(|spec| spec.after.push(prerequisite))
    }

    /// Longest time of one attempt.
    #[must_use]
    pub fn timeout(self, limit: Duration) -> Self {
        self.spec(|spec| spec.attempt_timeout = prost_types::Duration::try_from(limit).ok())
    }

    /// Changes any other field.
    #[must_use]
    pub fn spec(mut self, change: impl FnOnce(&mut TaskSpec)) -> Self {
        change(self.request.task.get_or_insert_default().spec.get_or_insert_default());
        self
    }

    /// The request of one create; it has a request id.
    pub(crate) fn into_request(self, parent: &str) -> CreateTaskRequest {
        let mut request = self.request;
        parent.clone_into(&mut request.parent);
        if request.request_id.is_empty() {
            request.request_id = new_request_id();
        }
        request
    }
}

/// A value as JSON. Raw and not Struct, so that the bytes stay as they are.
pub fn json_payload<T: Serialize + ?Sized>(value: &T) -> serde_json::Result<Payload> {
    let raw = payload::Value::Raw(serde_json::to_vec(value)?);
    Ok(Payload { content_type: "application/json".to_owned(), value: Some(raw) })
}

/// The document of a raw payload as text; empty if there is none.
pub fn payload_text(payload: &Payload) -> String {
    match &payload.value {
        Some(payload::Value::Raw(raw)) => String::from_utf8_lossy(raw).into_owned(),
        _ => String::new(),
    }
}

/// A unique id that begins with the time, so that ids made together are stored together in the server's index.
pub(crate) fn new_request_id() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let (first, second): (u64, u16) = rand::rng().random();
    format!("{:012x}{first:016x}{second:04x}", now.as_millis())
}
