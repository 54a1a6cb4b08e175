//! The retry and timeout of every method: `service_config.json`, the gRPC service config that all clients read.

use std::{collections::HashMap, sync::LazyLock, time::Duration};

use serde::Deserialize;
use tonic::Code;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Config {
    method_config: Vec<MethodConfig>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MethodConfig {
    name: Vec<Name>,
    timeout: Option<String>,
    retry_policy: Option<Policy>,
}

#[derive(Deserialize)]
struct Name {
    service: String,
    method: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Policy {
    max_attempts: u32,
    initial_backoff: String,
    max_backoff: String,
    backoff_multiplier: f64,
    retryable_status_codes: Vec<String>,
}

/// How often a method may be sent, and the delays in between.
#[derive(Clone, Debug)]
pub(crate) struct Retries {
    pub max_attempts: u32,
    pub initial: Duration,
    pub max: Duration,
    pub multiplier: f64,
    codes: Vec<Code>,
}

impl Retries {
    pub(crate) fn allows(&self, code: Code) -> bool {
        self.codes.contains(&code)
    }
}

/// The settings of one method; a method without retries is not safe to repeat.
#[derive(Clone, Debug, Default)]
pub(crate) struct Method {
    pub timeout: Option<Duration>,
    pub retries: Option<Retries>,
}

static METHODS: LazyLock<HashMap<String, Method>> = LazyLock::new(|| {
    let config: Config = serde_json::from_str(include_str!("stubs/service_config.json")).expect("it is verified");
    let mut methods = HashMap::new();
    for entry in config.method_config {
        let method = Method {
            timeout: entry.timeout.as_deref().map(seconds),
            retries: entry.retry_policy.as_ref().map(retries),
        };
        for name in &entry.name {
            methods.insert(format!("/{}/{}", name.service, name.method), method.clone());
        }
    }
    methods
});

/// The settings of a method by its path, `/taskyard.v1.TaskService/GetTask`.
pub(crate) fn method(path: &str) -> Method {
    METHODS.get(path).cloned().unwrap_or_default()
}

fn retries(policy: &Policy) -> Retries {
    let all = (0..17).map(Code::from);
    let codes = all.filter(|code| policy.retryable_status_codes.contains(&name_of(*code))).collect();
    Retries {
        max_attempts: policy.max_attempts,
        initial: seconds(&policy.initial_backoff),
        max: seconds(&policy.max_backoff),
        multiplier: policy.backoff_multiplier,
        codes,
    }
}

fn seconds(text: &str) -> Duration {
    Duration::from_secs_f64(text.trim_end_matches('s').parse().expect("it is verified"))
}

/// The name of a code in a service config, `RESOURCE_EXHAUSTED`.
pub(crate) fn name_of(code: Code) -> String {
    let mut name = String::new();
    for letter in format!("{code:?}").chars() {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.extend(letter.to_uppercase());
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_is_retried_and_a_stream_is_not() {
        let get = method("/taskyard.v1.TaskService/GetTask");
        assert_eq!(get.timeout, Some(Duration::from_secs(30)));
        assert!(get.retries.expect("it is safe to repeat").allows(Code::Unavailable));
        assert!(method("/taskyard.v1.TaskService/WatchTasks").retries.is_none());
        assert_eq!(name_of(Code::FailedPrecondition), "FAILED_PRECONDITION");
    }
}
