//! W3C trace context that is passed on.

use std::future::Future;

tokio::task_local! {
    static TRACEPARENT: String;
}

/// Calls made by `work` carry this traceparent.
pub async fn with_traceparent<F: Future>(traceparent: impl Into<String>, work: F) -> F::Output {
    TRACEPARENT.scope(traceparent.into(), work).await
}

/// The traceparent of the running task; empty if there is none.
pub(crate) fn current() -> String {
    TRACEPARENT.try_with(Clone::clone).unwrap_or_default()
}
