//! A session played by a script of bytes: what the server writes, where the reads are cut, what callers do meanwhile, and what must be
//! true whatever the script says. The property test and the fuzz target play the same scripts.
//!
//! - [`memory`] — a link without a process, over the client's own framing
//! - [`stage`] — a session on it, its callers, and what each step of a script does
//! - [`caller`] — those who call
//! - [`reader`] — a second reader of what the server wrote
//! - [`verdict`] — what must be true in the end

mod caller;
pub(crate) mod memory;
pub(crate) mod reader;
mod stage;
mod verdict;

use stage::Stage;

/// Plays one script and panics where a promise is broken. The clock stands still but for the steps that let time pass.
pub(crate) fn play(script: &[u8]) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let mut bytes = script.iter().copied();
        let mut stage = Stage::new(bytes.next().unwrap_or_default()).await;
        while let Some(step) = bytes.next() {
            stage.step(step, &mut bytes).await;
        }
        verdict::end(stage).await;
        // A start that is given up releases its caller before the server has left.
        tokio::time::sleep(memory::LEAVES_WITHIN).await;
    });
    assert_eq!(runtime.metrics().num_alive_tasks(), 0, "a task is left");
}
