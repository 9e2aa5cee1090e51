//! Windows: the same rooms, with a job object in place of the process group.
//!
//! - [`spawn`] — created suspended, put into a job, resumed; three pipes
//! - [`job`] — everybody the ladder reaches: no descendant leaves a job, and the system ends it with its last handle
//! - [`resume`] — a process that was created suspended runs
//! - [`watch`], [`ladder`], [`pipes`], [`executable`] — as on the other systems
//! - [`guardian`] — there is none

pub(super) mod executable;
pub(super) mod guardian;
mod job;
pub(super) mod ladder;
pub mod pipes;
mod resume;
pub(super) mod spawn;
pub(super) mod watch;
