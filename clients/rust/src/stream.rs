//! Streams that outlive their connections: they resume where they broke, without gaps or repeats.

use std::{
    collections::{HashMap, VecDeque},
    future::Future,
    time::Duration,
};

use async_stream::try_stream;
use tokio::time::timeout;
use tokio_stream::Stream;

use crate::{
    channel::Responses,
    retry::RetryTimer,
    v1::{LogEntry, LogLevel, LogSource, TailTaskLogsResponse, TaskEvent, TaskEventType, WatchTasksResponse},
    Error, Result,
};

/// Longest silence of a watch; the server sends a bookmark every 15 s.
pub(crate) const SILENCE: Duration = Duration::from_secs(60);
/// The server ends a stream after at most 66 minutes and announces that.
pub(crate) const STREAM_LIMIT: Duration = Duration::from_secs(70 * 60);
/// Tasks whose newest version is kept to detect repeats.
const MAX_TRACKED_TASKS: usize = 100_000;

/// What the responses of both streams have.
pub(crate) trait Resumable {
    fn token(&self) -> &str;
    fn closing(&self) -> bool;
    fn complete(&self) -> bool;
}

impl Resumable for WatchTasksResponse {
    fn token(&self) -> &str {
        &self.resume_token
    }
    fn closing(&self) -> bool {
        self.closing
    }
    fn complete(&self) -> bool {
        false
    }
}

impl Resumable for TailTaskLogsResponse {
    fn token(&self) -> &str {
        &self.resume_token
    }
    fn closing(&self) -> bool {
        self.closing
    }
    fn complete(&self) -> bool {
        self.complete
    }
}

/// How a stream resumes; one that is `endless` goes on when the server ends it.
pub(crate) struct Resume {
    pub token: String,
    pub endless: bool,
    pub silence: Duration,
    pub outage: Duration,
}

/// Every response of the streams that `connect` opens, over as many connections as needed. Fails if the first connection
/// fails, if an error is permanent, or after an outage of `outage`.
pub(crate) fn responses<R, C, F>(resume: Resume, connect: C) -> impl Stream<Item = Result<R>>
where
    R: Resumable,
    C: Fn(String) -> F,
    F: Future<Output = Result<Responses<R>>>,
{
    try_stream! {
        let Resume { mut token, endless, silence, outage } = resume;
        let mut timer: Option<RetryTimer> = None;
        'connections: loop {
            let mut closing = endless;
            let lost = match connect(token.clone()).await {
                Err(error) => error,
                Ok(mut stream) => loop {
                    let silent = || Error::unavailable(format!("the server sent nothing for {silence:?}"));
                    match timeout(silence, stream.next()).await.unwrap_or_else(|_| Err(silent())) {
                        Ok(Some(response)) => {
                            timer.get_or_insert_with(|| RetryTimer::new(outage)).refresh();
                            if !response.token().is_empty() {
                                response.token().clone_into(&mut token);
                            }
                            closing = endless || response.closing();
                            let complete = response.complete();
                            yield response;
                            if complete {
                                break 'connections;
                            }
                        }
                        Ok(None) if !closing => break 'connections,
                        Ok(None) => break Error::unavailable("the server ended the stream"),
                        Err(error) => break error,
                    }
                },
            };
            let mut first = RetryTimer::new(Duration::ZERO);
            timer.as_mut().unwrap_or(&mut first).wait(lost).await?;
        }
    }
}

/// A change of a task, and the token after which a later watch continues behind it.
#[derive(Clone, Debug)]
pub struct WatchEvent {
    pub event: TaskEvent,
    pub resume_token: String,
}

/// Drops what a resumed watch delivers again.
#[derive(Default)]
pub(crate) struct Versions {
    seen: HashMap<String, i64>,
    order: VecDeque<String>,
}

impl Versions {
    /// The new events of a response; `token` becomes that of the response.
    pub(crate) fn events(&mut self, response: WatchTasksResponse, token: &mut String) -> Vec<WatchEvent> {
        let fresh = response.events.into_iter().filter(|event| self.is_new(event));
        let mut events: Vec<WatchEvent> =
            fresh.map(|event| WatchEvent { event, resume_token: token.clone() }).collect();
        if !response.resume_token.is_empty() {
            *token = response.resume_token;
        }
        // Until the last event of a response is processed, only the token before it is safe.
        if let Some(last) = events.last_mut() {
            last.resume_token.clone_from(token);
        }
        events
    }

    fn is_new(&mut self, event: &TaskEvent) -> bool {
        let task = event.task.clone().unwrap_or_default();
        // A task that was deleted and created again has the old name and a new uid.
        let uid = task.metadata.unwrap_or_default().uid;
        let key = if uid.is_empty() { task.name } else { uid };
        let deleted = event.r#type() == TaskEventType::Deleted;
        let version = if deleted { i64::MAX } else { event.resource_version };
        let Some(last) = self.seen.get_mut(&key) else {
            self.order.push_back(key.clone());
            self.seen.insert(key, version);
            if self.order.len() > MAX_TRACKED_TASKS {
                self.order.pop_front().map(|oldest| self.seen.remove(&oldest));
            }
            return true;
        };
        let fresh = version > *last;
        *last = version.max(*last);
        fresh
    }
}

/// Drops what a resumed log delivers again.
#[derive(Default)]
pub(crate) struct Sequences(HashMap<i64, i64>);

impl Sequences {
    /// The new entries of a response, with a warning where the runner had to drop some.
    pub(crate) fn entries(&mut self, response: TailTaskLogsResponse) -> Vec<LogEntry> {
        let mut entries = Vec::new();
        if response.dropped_count > 0 {
            entries.push(LogEntry {
                generation: response.entries.first().map_or(0, |entry| entry.generation),
                level: LogLevel::Warning.into(),
                source: LogSource::Runner.into(),
                message: format!(
                    "{} lines are missing here; they were written too fast to be sent",
                    response.dropped_count
                ),
                ..LogEntry::default()
            });
        }
        for entry in response.entries {
            let last = self.0.entry(entry.generation).or_default();
            if entry.sequence > *last {
                *last = entry.sequence;
                entries.push(entry);
            }
        }
        entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(version: i64) -> TaskEvent {
        let task = crate::v1::Task { name: "t".to_owned(), ..Default::default() };
        TaskEvent { task: Some(task), resource_version: version, ..Default::default() }
    }

    #[test]
    fn a_repeated_change_is_dropped_and_tokens_are_safe() {
        let mut versions = Versions::default();
        let mut token = "a".to_owned();
        let first = WatchTasksResponse {
            events: vec![change(1), change(2)],
            resume_token: "b".to_owned(),
            ..Default::default()
        };
        let events = versions.events(first.clone(), &mut token);
        let tokens: Vec<_> = events.iter().map(|event| event.resume_token.as_str()).collect();
        assert_eq!(tokens, ["a", "b"]);
        assert!(versions.events(first, &mut token).is_empty());
    }

    #[test]
    fn a_repeated_line_is_dropped() {
        let entry = |sequence| LogEntry { generation: 1, sequence, ..Default::default() };
        let mut sequences = Sequences::default();
        let page = |all: &[i64]| TailTaskLogsResponse {
            entries: all.iter().copied().map(entry).collect(),
            ..Default::default()
        };
        assert_eq!(sequences.entries(page(&[1, 2])).len(), 2);
        assert_eq!(sequences.entries(page(&[2, 3])).len(), 1);
    }
}
