//! What a call may want beyond its name and arguments.

use std::time::Duration;

use napi_derive::napi;

use crate::session::calls::{OnProgress, Terms};

/// What a call may want beyond its name and arguments. Times are milliseconds.
#[napi(object)]
pub struct CallOptions {
    pub timeout: Option<f64>,
    pub max_total_timeout: Option<f64>,
    pub reset_timeout_on_progress: Option<bool>,
    pub wants_progress: Option<bool>,
    /// A JSON object.
    pub meta: Option<String>,
}

/// The terms, and the `_meta`. `timeout` is that of a call that names none; `on_progress` is asked only where progress is wanted.
pub(super) fn terms(
    options: Option<CallOptions>,
    phase: &'static str,
    timeout: Duration,
    on_progress: impl FnOnce() -> OnProgress,
) -> (Terms, Option<String>) {
    let Some(options) = options else {
        return (Terms::within(phase, Some(timeout)), None);
    };
    let terms = Terms {
        phase,
        timeout: Some(options.timeout.map_or(timeout, milliseconds)),
        total: options.max_total_timeout.map(milliseconds),
        reset_on_progress: options.reset_timeout_on_progress.unwrap_or_default(),
        on_progress: options.wants_progress.unwrap_or_default().then(on_progress),
        begun: None,
    };
    (terms, options.meta)
}

fn milliseconds(value: f64) -> Duration {
    Duration::try_from_secs_f64(value / 1_000.0).unwrap_or(Duration::MAX)
}
