//! Every error of the client, and how errors of gRPC become one: by reason, never by message text.

use std::{collections::HashMap, error::Error as StdError, io, time::Duration};

use prost::Message;
use tonic::{Code, Status};

use crate::context::Context;
use crate::stubs::google::rpc::{self, BadRequest, ErrorInfo, RetryInfo};
use crate::v1::ErrorReason;

const DOMAIN: &str = "taskyard.v1";

/// Any error of the client; each message is one sentence with the remedy.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No server is configured.
    #[error("{0}")]
    NoContext(String),
    /// A context file is damaged, foreign or writable by others, or names what cannot be used.
    #[error("{0}")]
    ContextInvalid(String),
    /// The `expire_time` of a context file has passed.
    #[error("{0}")]
    ContextExpired(String),
    /// A key would leave this machine in plaintext.
    #[error("{0}")]
    PlaintextRefused(String),
    /// Nothing answers at the address.
    #[error("{0}")]
    ServerUnreachable(Box<Failure>),
    /// The server's certificate is not issued by the CA.
    #[error("{0}")]
    CertificateUntrusted(Box<Failure>),
    /// The server does not serve `taskyard.v1`.
    #[error("{0}")]
    VersionUnsupported(Box<Failure>),
    /// No key, or one that the server rejects.
    #[error("{0}")]
    Unauthenticated(Box<Failure>),
    /// The time that the caller gave to a wait is up.
    #[error("{0}")]
    WaitTimeout(String),
    /// The server answered with an error; [`Failure::reason`] is its type.
    #[error("{0}")]
    Call(Box<Failure>),
}

/// One broken rule: the path of the field in the request, what is wrong, and the rule's id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldViolation {
    pub field: String,
    pub description: String,
    pub rule: String,
}

/// What an error of a call carries.
#[derive(Clone, Debug)]
pub struct Failure {
    pub code: Code,
    /// [`ErrorReason::Unspecified`] if gRPC itself raised the error.
    pub reason: ErrorReason,
    pub message: String,
    /// The variable parts of the message, by name.
    pub metadata: HashMap<String, String>,
    pub violations: Vec<FieldViolation>,
    pub retry_after: Option<Duration>,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl Failure {
    fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            reason: ErrorReason::Unspecified,
            message: message.into(),
            metadata: HashMap::new(),
            violations: Vec::new(),
            retry_after: None,
        }
    }

    fn from_status(status: &rpc::Status) -> Self {
        let mut failure = Self::new(Code::from(status.code), status.message.clone());
        for detail in &status.details {
            let value = detail.value.as_slice();
            match detail.type_url.rsplit('/').next() {
                Some("google.rpc.ErrorInfo") => failure.read_info(ErrorInfo::decode(value).unwrap_or_default()),
                Some("google.rpc.BadRequest") => {
                    let bad = BadRequest::decode(value).unwrap_or_default();
                    failure.violations = bad.field_violations.into_iter().map(FieldViolation::from).collect();
                }
                Some("google.rpc.RetryInfo") => {
                    let delay = RetryInfo::decode(value).unwrap_or_default().retry_delay;
                    failure.retry_after = delay.and_then(|delay| Duration::try_from(delay).ok());
                }
                _ => {}
            }
        }
        failure
    }

    fn read_info(&mut self, info: ErrorInfo) {
        if info.domain == DOMAIN {
            let name = format!("ERROR_REASON_{}", info.reason);
            self.reason = ErrorReason::from_str_name(&name).unwrap_or_default();
        }
        self.metadata = info.metadata;
    }

    fn is_ours(&self) -> bool {
        self.reason != ErrorReason::Unspecified
    }
}

impl From<rpc::bad_request::FieldViolation> for FieldViolation {
    fn from(found: rpc::bad_request::FieldViolation) -> Self {
        Self { field: found.field, description: found.description, rule: found.reason }
    }
}

impl Error {
    /// What an error of a call carries.
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Self::ServerUnreachable(found)
            | Self::CertificateUntrusted(found)
            | Self::VersionUnsupported(found)
            | Self::Unauthenticated(found)
            | Self::Call(found) => Some(found),
            _ => None,
        }
    }

    /// The reason of an error of the server.
    pub fn reason(&self) -> Option<ErrorReason> {
        self.failure().map(|found| found.reason).filter(|reason| *reason != ErrorReason::Unspecified)
    }

    /// Whether the same request may be sent again, after `retry_after` or a back-off.
    pub fn is_retryable(&self) -> bool {
        if matches!(self, Self::CertificateUntrusted(_)) {
            return false;
        }
        self.failure().is_some_and(|found| match found.code {
            Code::ResourceExhausted => found.retry_after.is_some(),
            code => code == Code::Unavailable,
        })
    }

    /// The error of an item of a batch.
    pub(crate) fn from_item(status: &rpc::Status) -> Self {
        Self::Call(Box::new(Failure::from_status(status)))
    }

    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self::Call(Box::new(Failure::new(Code::Unavailable, message)))
    }

    pub(crate) fn deadline_exceeded(path: &str, limit: Duration) -> Self {
        let mut failure = Failure::new(
            Code::DeadlineExceeded,
            format!("{path} took longer than {limit:?}; the outcome of a write is unknown, repeat it unchanged"),
        );
        failure.reason = ErrorReason::DeadlineExceeded;
        Self::Call(Box::new(failure))
    }
}

/// Where a call went, for the message of an error of the connection.
pub(crate) struct Target<'a> {
    pub address: &'a str,
    pub key: &'a str,
    pub path: &'a str,
    pub context: &'a Context,
}

/// The code of a failed call; a connection that broke is UNAVAILABLE, whatever tonic makes of it.
pub(crate) fn code_of(status: &Status) -> Code {
    let broken = matches!(status.code(), Code::Unknown | Code::Internal | Code::Cancelled);
    if broken && status.details().is_empty() && status.source().is_some() {
        return Code::Unavailable;
    }
    status.code()
}

/// The error of a failed call; errors of the connection name what is wrong and the remedy.
pub(crate) fn from_call(status: &Status, target: &Target<'_>) -> Error {
    let mut failure = match rpc::Status::decode(status.details()) {
        Ok(found) if !status.details().is_empty() => Failure::from_status(&found),
        _ => Failure::new(code_of(status), status.message()),
    };
    let place = format!("{} (from {})", target.address, target.context.source);
    if failure.code == Code::Unauthenticated {
        failure.message = rejected_key(&failure, target, &place);
        return Error::Unauthenticated(Box::new(failure));
    }
    if failure.is_ours() {
        return Error::Call(Box::new(failure));
    }
    if failure.code == Code::Unimplemented {
        let service = target.path.trim_start_matches('/').split('/').next().unwrap_or_default();
        failure.message = format!(
            "the server at {place} does not serve {service}, so it is of another major version; \
             use the client of its version, or set TASKYARD_ADDRESS to another server"
        );
        return Error::VersionUnsupported(Box::new(failure));
    }
    if failure.code != Code::Unavailable {
        return Error::Call(Box::new(failure));
    }
    if let Some(problem) = tls_problem(status) {
        failure.message = format!(
            "the certificate of the server at {place} is not trusted ({problem}); \
             set TASKYARD_TLS_CA to the file of the CA that issued it"
        );
        return Error::CertificateUntrusted(Box::new(failure));
    }
    failure.message = format!(
        "no server answers at {place}; start one with `make up` or `taskyard up`, \
         or set TASKYARD_ADDRESS and TASKYARD_KEY"
    );
    Error::ServerUnreachable(Box::new(failure))
}

fn rejected_key(failure: &Failure, target: &Target<'_>, place: &str) -> String {
    if target.key.is_empty() {
        return format!("a key is required by the server at {place}; set TASKYARD_KEY");
    }
    let problem = failure.metadata.get("problem").unwrap_or(&failure.message);
    match target.context.key_file.as_str() {
        file if !file.is_empty() && target.key == target.context.key => format!(
            "the key in {file} is rejected by the server at {place}: {problem}; put a key that is in force into it"
        ),
        _ => format!(
            "the key is rejected by the server at {place}: {problem}; set TASKYARD_KEY to a key that is in force"
        ),
    }
}

fn tls_problem(status: &Status) -> Option<String> {
    let mut next: Option<&(dyn StdError + 'static)> = status.source();
    while let Some(error) = next {
        let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        let found = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>());
        if let Some(tls) = found.or_else(|| error.downcast_ref::<rustls::Error>()) {
            return Some(tls.to_string());
        }
        next = error.source();
    }
    None
}
