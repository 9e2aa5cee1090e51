//! One thread for the whole process, started on first use and never torn down by one environment: every timer and ladder lives
//! on it, and every read and write that is not short enough for the thread that waits for it.
//!
//! A `current_thread` runtime: the multi-thread one was 1.5 to 2 times slower here at twice the CPU (measured on a prototype).

use std::future::pending;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use std::{io, thread};

use tokio::runtime::{Builder, Handle};

use crate::error::{ErrorCode, McpError};

/// Threads for what would block: starting a program suspends its thread until the exec.
const POOL_SIZE: usize = 4;

/// The pool's threads stay. Where a system has no thread left to give, `spawn_blocking` queues for those that there are, and panics
/// when there is none: then a server could not even be stopped.
const POOL_IDLE: Duration = Duration::from_hours(24 * 365);

static HANDLE: Mutex<Option<Handle>> = Mutex::new(None);

/// The thread's runtime, started if need be.
pub fn handle() -> Result<Handle, McpError> {
    let mut handle = HANDLE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(handle) = &*handle {
        return Ok(handle.clone());
    }
    let started = start().map_err(|error| {
        McpError::new(ErrorCode::Internal, format!("The I/O thread could not be started: {error}."))
    })?;
    *handle = Some(started.clone());
    Ok(started)
}

fn start() -> io::Result<Handle> {
    let runtime = Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .max_blocking_threads(POOL_SIZE)
        .thread_keep_alive(POOL_IDLE)
        .thread_name("workflow-mcp-pool")
        .build()?;
    // The first thread of the pool, while its failure is still an error: an attempt of our own, for that of `spawn_blocking` panics.
    thread::Builder::new().spawn(|| {})?.join().map_err(|_| io::Error::other("a thread has panicked"))?;
    drop(runtime.spawn_blocking(|| {}));
    let handle = runtime.handle().clone();
    thread::Builder::new().name("workflow-mcp-io".into()).spawn(move || runtime.block_on(pending::<()>()))?;
    Ok(handle)
}
