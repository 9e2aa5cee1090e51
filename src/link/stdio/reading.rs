//! Reading a server's stdout on the I/O thread, from which it is lent while calls come one at a time: see `lending`.

use std::pin::pin;
use std::sync::Arc;

use super::intake::Intake;
use super::read::{LAST_READ_MAX, Read, read_now, read_some};
use super::{EXIT_WAIT, STDERR_WAIT, Stdio};
use crate::error::McpError;
use crate::link::{Arrival, Gone, Receiver};
use crate::process::pipes::{self, Output};

/// A line that goes on after so much is likely to be longer than what a pipe holds, which is 64 KiB on Linux, and less
/// where it was not filled in whole pages; and to be followed by others like it.
const WIDEN_FROM: usize = 48 * 1024;

impl Stdio {
    pub(super) async fn run(&self, stdout: Output, limit: usize, receiver: Arc<dyn Receiver>) {
        let mut stdout = Some(stdout);
        let gone = if let Err(error) = self.read(&mut stdout, limit, &receiver).await {
            Gone { error, protocol_error: true }
        } else {
            // The exit code usually comes a moment after the end of a pipe, or has come before it.
            let _ = tokio::time::timeout(EXIT_WAIT, self.process.exited()).await;
            let _ = tokio::time::timeout(STDERR_WAIT, self.stderr.drained()).await;
            Gone { error: self.obituary("stdout"), protocol_error: self.process.exit().is_none() }
        };
        receiver.arrived(Arrival::Gone(gone));
        if let Some(mut stdout) = stdout {
            self.drain(&mut stdout).await;
        }
    }

    /// Reads on, for nobody, until whoever the server left behind is gone, too: a helper that writes while it cleans up after SIGTERM
    /// would die of SIGPIPE instead.
    pub(super) async fn drain(&self, output: &mut Output) {
        let mut over = self.over.subscribe();
        let mut waste = Vec::with_capacity(16 * 1024);
        let reading = async {
            while read_some(output, &mut waste).await == Read::Some {
                waste.clear();
            }
        };
        tokio::select! {
            _ = over.wait_for(|over| *over) => {}
            () = reading => {}
        }
    }

    /// Reads until nothing more can come; an error is the server's breach of the protocol.
    async fn read(
        &self,
        output: &mut Option<Output>,
        limit: usize,
        receiver: &Arc<dyn Receiver>,
    ) -> Result<(), McpError> {
        let mut intake = Intake::new(self.server.clone(), limit, self.noise.clone());
        let mut last_bytes = None;
        let mut is_wide = false;
        // Most servers that stop reading are about to leave, and then there is more to say.
        let deaf = async {
            self.deaf.notified().await;
            tokio::time::sleep(EXIT_WAIT).await;
        };
        let mut deaf = pin!(deaf);
        while let Some(stdout) = output {
            let space = intake.space();
            let before = space.len();
            let read = match last_bytes {
                None => tokio::select! {
                    biased;
                    _ = self.process.exited() => { last_bytes = Some(0); continue }
                    () = &mut deaf => return Err(self.obituary("stdin")),
                    read = read_some(stdout, space) => read,
                },
                Some(bytes) if bytes > LAST_READ_MAX => Read::End,
                Some(_) => read_now(stdout, space).await,
            };
            if read != Read::Some {
                break;
            }
            let count = intake.length() - before;
            self.traffic.received(count, intake.length());
            last_bytes = last_bytes.map(|bytes| bytes + count as u64);
            #[cfg(unix)]
            if last_bytes.is_none()
                && let Some(borrower) = self.borrower(&intake, &**receiver)
            {
                intake = self.lend(output, intake, receiver, borrower).await?;
                continue;
            }
            intake.deliver(&**receiver).await?;
            if !is_wide && intake.length() > WIDEN_FROM {
                is_wide = true;
                pipes::widen(stdout);
            }
        }
        intake.finish(&**receiver).await;
        Ok(())
    }
}
