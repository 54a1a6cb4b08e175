//! The driver of the Rust client; the protocol is in tests/conformance/README.md.

use std::{collections::HashMap, pin::Pin, sync::Arc, time::Duration};

use serde_json::{json, Map, Value};
use taskyard::{
    json_payload, payload_text, v1, with_traceparent, Client, Error, FieldViolation, NewTask, Options, Result,
    Schedules,
};
use tokio::{
    io::{stdin, AsyncBufReadExt, BufReader},
    sync::Mutex,
};
use tokio_stream::{Stream, StreamExt};

type Items = Pin<Box<dyn Stream<Item = Result<Value>> + Send>>;

#[derive(Default)]
struct Driver {
    client: Mutex<Option<Client>>,
    streams: Mutex<HashMap<String, Arc<Mutex<Items>>>>,
}

#[tokio::main]
async fn main() {
    let driver = Arc::new(Driver::default());
    let mut lines = BufReader::new(stdin()).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let driver = Arc::clone(&driver);
        tokio::spawn(async move {
            let request: Map<String, Value> = serde_json::from_str(&line).expect("a request is a JSON object");
            let id = &request["id"];
            let answer = match driver.answer(&request).await {
                Ok(ok) => json!({"id": id, "ok": ok}),
                Err(error) => json!({"id": id, "error": show_error(&error)}),
            };
            println!("{answer}");
        });
    }
    std::process::exit(0);
}

impl Driver {
    async fn client(&self) -> Client {
        self.client.lock().await.clone().expect("connect comes first")
    }

    async fn schedules(&self) -> Schedules {
        self.client().await.schedules()
    }

    async fn answer(&self, given: &Map<String, Value>) -> Result<Value> {
        let task = text(given, "task");
        let schedule = text(given, "schedule");
        match text(given, "op") {
            "hello" => Ok(json!({"language": "rust", "features": []})),
            "connect" => self.connect(given).await,
            "create" => {
                let client = self.client().await;
                let made = with_traceparent(text(given, "traceparent"), client.create(new_task(given))).await?;
                let outcome = bare(made.outcome().as_str_name(), "CREATE_OUTCOME_");
                let task = made.task.unwrap_or_default();
                Ok(json!({"name": task.name, "outcome": outcome, "phase": phase(&task)}))
            }
            "get" => Ok(show_task(&self.client().await.get(task).await?)),
            "wait" => Ok(show_task(&self.client().await.wait(task, seconds(given, "timeout")).await?)),
            "cancel" => Ok(show_task(&self.client().await.cancel(task, text(given, "reason")).await?)),
            "list" => {
                let size = given.get("page_size").and_then(Value::as_i64).unwrap_or_default();
                let size = i32::try_from(size).expect("a page is small");
                let found: Result<Vec<v1::Task>> =
                    self.client().await.list(text(given, "filter"), size).collect().await;
                Ok(json!({"names": found?.into_iter().map(|task| task.name).collect::<Vec<_>>()}))
            }
            "watch" => {
                let events = self.client().await.watch(watch_request(given));
                self.open(given, Box::pin(events.map(|event| Ok(show_event(&event?.event))))).await;
                Ok(json!({}))
            }
            "logs" => {
                let follow = given.get("follow") == Some(&json!(true));
                let entries = self.client().await.logs(task, follow);
                self.open(given, Box::pin(entries.map(|entry| Ok(show_entry(&entry?))))).await;
                Ok(json!({}))
            }
            "next" => self.next(given).await,
            "close" => {
                self.streams.lock().await.remove(text(given, "stream"));
                Ok(json!({}))
            }
            "schedule_create" => {
                let times = schedule_times(given);
                Ok(show_schedule(&self.schedules().await.create(schedule, new_task(given), times).await?))
            }
            "schedule_get" => Ok(show_schedule(&self.schedules().await.get(schedule).await?)),
            "schedule_list" => {
                let size = given.get("page_size").and_then(Value::as_i64).unwrap_or_default();
                let size = i32::try_from(size).expect("a page is small");
                let found: Result<Vec<v1::Schedule>> =
                    self.schedules().await.list(text(given, "filter"), size).collect().await;
                Ok(json!({"names": found?.into_iter().map(|schedule| schedule.name).collect::<Vec<_>>()}))
            }
            "schedule_pause" => Ok(show_schedule(&self.schedules().await.pause(schedule, text(given, "note")).await?)),
            "schedule_resume" => Ok(show_schedule(&self.schedules().await.resume(schedule).await?)),
            "schedule_run" => Ok(show_task(&self.schedules().await.run(schedule).await?.task.unwrap_or_default())),
            "schedule_delete" => self.schedules().await.delete(schedule).await.map(|()| json!({})),
            other => panic!("no such operation: {other}"),
        }
    }

    async fn connect(&self, given: &Map<String, Value>) -> Result<Value> {
        let mut options = Options::new()
            .address(text(given, "address"))
            .key(text(given, "key"))
            .tenant(text(given, "tenant"))
            .scheduler(text(given, "scheduler"))
            .tls_ca(text(given, "tls_ca"));
        if let Some(outage) = seconds(given, "outage_timeout") {
            options = options.outage_timeout(outage);
        }
        let client = options.connect()?;
        let shown = json!({"address": client.context().address, "tenant": client.context().tenant});
        *self.client.lock().await = Some(client);
        Ok(shown)
    }

    async fn open(&self, given: &Map<String, Value>, items: Items) {
        let name = text(given, "stream").to_owned();
        self.streams.lock().await.insert(name, Arc::new(Mutex::new(items)));
    }

    async fn next(&self, given: &Map<String, Value>) -> Result<Value> {
        let stream = Arc::clone(&self.streams.lock().await[text(given, "stream")]);
        let count = given["count"].as_u64().expect("a count");
        let mut stream = stream.lock().await;
        let mut items = Vec::new();
        for _ in 0..count {
            match stream.next().await {
                Some(item) => items.push(item?),
                None => return Ok(json!({"items": items, "ended": true})),
            }
        }
        Ok(json!({"items": items, "ended": false}))
    }
}

fn new_task(given: &Map<String, Value>) -> NewTask {
    let mut task = NewTask::external();
    if given.contains_key("function") {
        task = NewTask::function(text(given, "function"));
    } else if let Some(Value::Array(words)) = given.get("command") {
        let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
        task = NewTask::command(words[0], words[1..].iter().copied());
    }
    task = task.id(text(given, "task_id")).request_id(text(given, "request_id"));
    if let Some(Value::Object(labels)) = given.get("labels") {
        for (name, value) in labels {
            task = task.label(name, value.as_str().unwrap_or_default());
        }
    }
    if let Some(count) = given.get("retries").and_then(Value::as_i64) {
        let soon = prost_types::Duration { seconds: 0, nanos: 10_000_000 };
        let backoff = v1::BackoffPolicy { initial: Some(soon), max: Some(soon), ..Default::default() };
        task = task.retries(i32::try_from(count).expect("a small number"));
        task = task.spec(|spec| spec.retry.get_or_insert_default().backoff = Some(backoff));
    }
    for one in given.get("after").and_then(Value::as_array).into_iter().flatten() {
        task = task.dependency(dependency(one.as_object().expect("a prerequisite is an object")));
    }
    if let Some(Value::String(exact)) = given.get("payload_text") {
        let raw = v1::payload::Value::Raw(exact.clone().into_bytes());
        task = task.payload(v1::Payload { content_type: "application/json".to_owned(), value: Some(raw) });
    } else if let Some(value) = given.get("payload") {
        task = task.payload(json_payload(value).expect("it came as JSON"));
    }
    task
}

fn dependency(given: &Map<String, Value>) -> v1::Dependency {
    let when = format!("DEPENDENCY_CONDITION_{}", text(given, "when").to_uppercase());
    v1::Dependency {
        task: text(given, "task").to_owned(),
        alias: text(given, "alias").to_owned(),
        when: v1::DependencyCondition::from_str_name(&when).unwrap_or_default().into(),
        ..Default::default()
    }
}

fn schedule_times(given: &Map<String, Value>) -> v1::Schedule {
    let lines = given.get("cron").and_then(Value::as_array).cloned().unwrap_or_default();
    v1::Schedule {
        cron: lines.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        paused: given.get("paused") == Some(&json!(true)),
        pause_note: text(given, "note").to_owned(),
        ..Default::default()
    }
}

fn show_schedule(schedule: &v1::Schedule) -> Value {
    json!({
        "name": schedule.name,
        "cron": schedule.cron,
        "paused": schedule.paused,
        "note": schedule.pause_note,
    })
}

fn watch_request(given: &Map<String, Value>) -> v1::WatchTasksRequest {
    let names = given.get("tasks").and_then(Value::as_array).cloned().unwrap_or_default();
    v1::WatchTasksRequest {
        names: names.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        filter: text(given, "filter").to_owned(),
        snapshot: given.get("snapshot") == Some(&json!(true)),
        until_terminal: given.get("until_terminal") == Some(&json!(true)),
        ..Default::default()
    }
}

fn show_event(event: &v1::TaskEvent) -> Value {
    let status = event.status.clone().unwrap_or_default();
    json!({
        "type": bare(event.r#type().as_str_name(), "TASK_EVENT_TYPE_"),
        "name": event.task.as_ref().map(|task| &task.name),
        "phase": bare(status.phase().as_str_name(), "TASK_PHASE_"),
        "version": event.resource_version,
    })
}

fn show_entry(entry: &v1::LogEntry) -> Value {
    json!({
        "message": entry.message,
        "level": bare(entry.level().as_str_name(), "LOG_LEVEL_"),
        "generation": entry.generation,
        "sequence": entry.sequence,
    })
}

fn show_task(task: &v1::Task) -> Value {
    let status = task.status.clone().unwrap_or_default();
    let payload = task.spec.clone().unwrap_or_default().payload.unwrap_or_default();
    let output = payload_text(&status.result.unwrap_or_default().output.unwrap_or_default());
    json!({
        "name": task.name,
        "phase": phase(task),
        "attempt": status.attempt,
        "exit_code": status.exit_code,
        "payload_text": payload_text(&payload),
        "output": serde_json::from_str::<Value>(&output).unwrap_or(Value::Null),
        "error": status.error.map(|error| json!({"code": error.code, "message": error.message})),
        "traceparent": task.metadata.clone().unwrap_or_default().traceparent,
    })
}

fn show_error(error: &Error) -> Value {
    let failure = error.failure();
    let of_server = || {
        let failure = failure.expect("the other kinds are listed");
        match failure.reason {
            v1::ErrorReason::Unspecified => format!("{:?}", failure.code),
            reason => bare(reason.as_str_name(), "ERROR_REASON_").to_owned(),
        }
    };
    let kind = match error {
        Error::NoContext(_) => "NO_CONTEXT".to_owned(),
        Error::ContextInvalid(_) => "CONTEXT_INVALID".to_owned(),
        Error::ContextExpired(_) => "CONTEXT_EXPIRED".to_owned(),
        Error::PlaintextRefused(_) => "PLAINTEXT_REFUSED".to_owned(),
        Error::ServerUnreachable(_) => "SERVER_UNREACHABLE".to_owned(),
        Error::CertificateUntrusted(_) => "CERTIFICATE_UNTRUSTED".to_owned(),
        Error::VersionUnsupported(_) => "VERSION_UNSUPPORTED".to_owned(),
        Error::WaitTimeout(_) => "TIMEOUT".to_owned(),
        Error::Unauthenticated(_) | Error::Call(_) => of_server(),
    };
    let violations: &[FieldViolation] = failure.map_or(&[], |failure| &failure.violations);
    let fields: Vec<Value> =
        violations.iter().map(|found| json!({"field": found.field, "description": found.description})).collect();
    let retry_after = failure.and_then(|failure| failure.retry_after).map(|delay| delay.as_secs_f64());
    json!({"kind": kind, "message": error.to_string(), "fields": fields, "retry_after": retry_after})
}

fn phase(task: &v1::Task) -> String {
    bare(task.status.clone().unwrap_or_default().phase().as_str_name(), "TASK_PHASE_").to_owned()
}

fn bare<'a>(name: &'a str, prefix: &str) -> &'a str {
    name.trim_start_matches(prefix)
}

fn text<'a>(given: &'a Map<String, Value>, name: &str) -> &'a str {
    given.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn seconds(given: &Map<String, Value>, name: &str) -> Option<Duration> {
    given.get(name).and_then(Value::as_f64).map(Duration::from_secs_f64)
}
