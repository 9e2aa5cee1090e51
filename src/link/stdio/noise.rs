//! What a server printed on stdout that is no message: counted, sampled, shown redacted, never answered.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::policy::redact::Redactor;

/// How many lines are kept, and how much of each.
const SAMPLES_MAX: usize = 8;
const SAMPLE_LENGTH: usize = 200;

pub struct Noise {
    state: Mutex<State>,
    redactor: Redactor,
}

#[derive(Default)]
struct State {
    count: u64,
    samples: Vec<String>,
}

impl Noise {
    #[must_use]
    pub fn new(redactor: Redactor) -> Self {
        Self { state: Mutex::default(), redactor }
    }

    /// Counts one line; true for the first.
    pub fn heard(&self, line: &str) -> bool {
        let mut state = self.lock();
        state.count += 1;
        if state.samples.len() < SAMPLES_MAX {
            state.samples.push(self.redactor.excerpt(line, SAMPLE_LENGTH));
        }
        state.count == 1
    }

    #[must_use]
    pub fn count(&self) -> u64 {
        self.lock().count
    }

    /// The first lines, redacted.
    #[must_use]
    pub fn samples(&self) -> Vec<String> {
        self.lock().samples.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
