//! Whether an interrupted call should be retried, how long to wait before, and when to stop.

use std::time::Duration;

use rand::Rng;
use tokio::time::Instant;
use tonic::Code;

use crate::{v1::ErrorReason, Error, Result};

const FIRST_DELAY: Duration = Duration::from_millis(100);
const MAX_DELAY: Duration = Duration::from_secs(1);

/// Whether a retry may succeed: the server asks for one, is unavailable, or the connection broke.
fn is_transient(error: &Error) -> bool {
    if error.is_retryable() || error.reason() == Some(ErrorReason::ConsumerStalled) {
        return true;
    }
    // Errors that gRPC itself raises for a broken connection carry no reason; the servers always set one.
    matches!(error, Error::Call(_))
        && error.reason().is_none()
        && error.failure().is_some_and(|found| matches!(found.code, Code::Internal | Code::Unknown | Code::Cancelled))
}

/// Waits longer with each failure in a row, for at most a limit since the last success.
pub(crate) struct RetryTimer {
    limit: Duration,
    delay: Duration,
    deadline: Instant,
}

impl RetryTimer {
    pub(crate) fn new(limit: Duration) -> Self {
        Self { limit, delay: FIRST_DELAY, deadline: Instant::now() + limit }
    }

    /// Restarts the limit after a success.
    pub(crate) fn refresh(&mut self) {
        *self = Self::new(self.limit);
    }

    /// Returns when the call should be retried; the error if it is permanent or time is up.
    pub(crate) async fn wait(&mut self, error: Error) -> Result<()> {
        let requested = error.failure().and_then(|found| found.retry_after).unwrap_or_default();
        let delay = requested.max(self.delay.mul_f64(rand::rng().random_range(0.5..1.0)));
        if !is_transient(&error) || Instant::now() + delay > self.deadline {
            return Err(error);
        }
        self.delay = MAX_DELAY.min(self.delay * 2);
        tokio::time::sleep(delay).await;
        Ok(())
    }
}
