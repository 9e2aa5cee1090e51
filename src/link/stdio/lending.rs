//! Lending a server's stdout to the host's own event loop, and taking it back.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::intake::Intake;
use super::loan::{Loan, Returned};
use super::traffic::LENT_MAX;
use super::{Stdio, unwatched};
use crate::error::McpError;
use crate::link::{HostLoop, Receiver};
use crate::process::pipes::{self, Output};

/// A loan that nothing was read of for so long is taken back: nothing comes, then waiting for it is the I/O thread's,
/// or the host's thread is busy, and a `ping` of the server must not wait for it.
const LOAN_UNUSED: Duration = Duration::from_millis(20);

/// What one server's stdout was lent for, and to whom it is lent now.
#[derive(Default)]
pub(super) struct Lending {
    loan: Mutex<Option<Arc<Loan>>>,
    /// The borrower cannot do anything with it, and is not asked again.
    is_refused: AtomicBool,
}

impl Stdio {
    /// The loop to which the pipe is to be lent: calls come one at a time, and what was read is all that there is.
    pub(super) fn borrower(&self, intake: &Intake, receiver: &dyn Receiver) -> Option<Arc<dyn HostLoop>> {
        let may_be_lent = self.traffic.is_sequential()
            && intake.length() <= LENT_MAX
            && intake.is_whole()
            && !self.lending.is_refused.load(Ordering::Relaxed);
        may_be_lent.then(|| receiver.host_loop()).flatten()
    }

    /// Delivers what was read and leaves the next reads to the host's loop, until calls are no longer one at a time,
    /// the loop does not read what comes, or nothing comes.
    pub(super) async fn lend(
        &self,
        output: &mut Option<Output>,
        intake: Intake,
        receiver: &Arc<dyn Receiver>,
        borrower: Arc<dyn HostLoop>,
    ) -> Result<Intake, McpError> {
        let lost = || unwatched(&io::ErrorKind::NotFound.into());
        let end = pipes::detached(output.take().ok_or_else(lost)?).map_err(|error| unwatched(&error))?;
        let loan = Arc::new(Loan::new(end, intake, receiver.clone(), self.traffic.clone()));
        *self.loan() = Some(loan.clone());
        // Before the answer is delivered, which wakes the loop anyhow: it then begins with both.
        let watch = borrower.watch(loan.clone());
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
            self.lending.is_refused.store(true, Ordering::Relaxed);
        }
        *self.loan() = None;
        drop(watch);
        let Returned { end, intake, answers, breach } = loan.take().ok_or_else(lost)?;
        self.traffic.held_for(answers);
        *output = Some(pipes::output(end).map_err(|error| unwatched(&error))?);
        breach.map_or(Ok(intake), Err)
    }

    /// Reads what is lent in the borrower's place, as far as something is there.
    pub(super) fn read_loan(&self) {
        let loan = self.loan().clone();
        if let Some(loan) = loan {
            while loan.has_more() {}
        }
    }

    /// Another request than the one that is under way: what answers them is for the I/O thread.
    pub(super) fn end_loan(&self) {
        if let Some(loan) = &*self.loan() {
            loan.end();
        }
    }

    fn loan(&self) -> MutexGuard<'_, Option<Arc<Loan>>> {
        self.lending.loan.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
