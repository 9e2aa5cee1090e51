//! Reading a server's stdout: on the I/O thread, or on the host's own while calls come one at a time.

#[cfg(unix)]
use std::io;
use std::pin::pin;
use std::sync::Arc;
#[cfg(unix)]
use std::sync::{MutexGuard, PoisonError};
#[cfg(unix)]
use std::time::Duration;

use super::intake::Intake;
#[cfg(unix)]
use super::loan::{Loan, Returned};
use super::read::{LAST_READ_MAX, Read, read_now, read_some};
#[cfg(unix)]
use super::traffic::SHORT;
#[cfg(unix)]
use super::unwatched;
use super::{EXIT_WAIT, STDERR_WAIT, Stdio};
use crate::error::McpError;
#[cfg(unix)]
use crate::link::HostLoop;
use crate::link::{Arrival, Gone, Receiver};
use crate::process::pipes::{self, Output};

/// A line that goes on after so much, which is what a pipe holds, is likely to be followed by others.
const WIDEN_FROM: usize = 64 * 1024;

/// A loan that nothing was read of for so long is taken back: nothing comes, then waiting for it is the I/O thread's,
/// or the host's thread is busy, and a `ping` of the server must not wait for it.
#[cfg(unix)]
const LOAN_UNUSED: Duration = Duration::from_millis(20);

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
        #[cfg(unix)]
        let mut host_loop = receiver.host_loop();
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
            self.traffic.received(count);
            last_bytes = last_bytes.map(|bytes| bytes + count as u64);
            #[cfg(unix)]
            if host_loop.is_some()
                && last_bytes.is_none()
                && self.traffic.is_sequential()
                && intake.length() <= SHORT
                && intake.is_whole()
            {
                intake = self.lend(output, intake, receiver, &mut host_loop).await?;
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

    /// Delivers what was read and leaves the next reads to the host's loop, until calls are no longer one at a time,
    /// the loop does not read what comes, or nothing comes.
    #[cfg(unix)]
    async fn lend(
        &self,
        output: &mut Option<Output>,
        intake: Intake,
        receiver: &Arc<dyn Receiver>,
        host_loop: &mut Option<Arc<dyn HostLoop>>,
    ) -> Result<Intake, McpError> {
        let lost = || unwatched(&io::ErrorKind::NotFound.into());
        let end = pipes::detached(output.take().ok_or_else(lost)?).map_err(|error| unwatched(&error))?;
        let loan = Arc::new(Loan::new(end, intake, receiver.clone(), self.traffic.clone()));
        *self.loan() = Some(loan.clone());
        // Before the answer is delivered, which wakes the loop anyhow: it then begins with both.
        let watch = host_loop.as_ref().and_then(|host_loop| host_loop.watch(loan.clone()));
        loan.deliver();
        let is_watched = watch.is_some();
        if is_watched {
            let mut reads = 0;
            loop {
                tokio::select! {
                    biased;
                    _ = self.process.exited() => break,
                    () = loan.ended() => break,
                    () = tokio::time::sleep(LOAN_UNUSED) => {}
                }
                if loan.reads() == reads {
                    break;
                }
                reads = loan.reads();
            }
        }
        if !is_watched || loan.is_refused() {
            // It cannot, and is not asked again.
            *host_loop = None;
        }
        *self.loan() = None;
        drop(watch);
        let Returned { end, intake, breach } = loan.take().ok_or_else(lost)?;
        self.traffic.held_for(loan.reads());
        *output = Some(pipes::output(end).map_err(|error| unwatched(&error))?);
        breach.map_or(Ok(intake), Err)
    }

    /// Reads what is lent in the borrower's place, as far as something is there.
    #[cfg(unix)]
    pub(super) fn read_loan(&self) {
        let loan = self.loan().clone();
        if let Some(loan) = loan {
            while loan.has_more() {}
        }
    }

    #[cfg(unix)]
    fn loan(&self) -> MutexGuard<'_, Option<Arc<Loan>>> {
        self.loan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another request than the one that is under way: what answers them is for the I/O thread.
    #[cfg_attr(not(unix), expect(clippy::unused_self, reason = "nothing is lent there"))]
    pub(super) fn end_loan(&self) {
        #[cfg(unix)]
        if let Some(loan) = &*self.loan() {
            loan.end();
        }
    }
}
