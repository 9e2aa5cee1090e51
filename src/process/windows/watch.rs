//! How the direct child ends.

use std::process::Child;
use std::{io, thread};

use tokio::sync::watch;

use super::job::Job;
use crate::process::outcome::Exit;

impl Exit {
    /// `None`: nobody is ended by a signal here.
    #[must_use]
    pub const fn signal_name(&self) -> Option<&'static str> {
        None
    }
}

/// The direct child of a spawn, and the job that it was put into.
pub(in crate::process) struct Leader {
    pid: u32,
    job: Job,
    exit: watch::Receiver<Option<Exit>>,
}

impl Leader {
    /// Watches a child by a thread that does nothing else, and ends with it.
    pub(super) fn adopt(mut child: Child, job: Job) -> io::Result<Self> {
        let pid = child.id();
        let (left, exit) = watch::channel(None);
        thread::Builder::new().name("workflow-mcp-wait".into()).spawn(move || {
            let code = child.wait().ok().and_then(|status| status.code());
            left.send_replace(Some(Exit { code, signal: None }));
        })?;
        Ok(Self { pid, job, exit })
    }

    pub(in crate::process) const fn number(&self) -> u32 {
        self.pid
    }

    pub(super) const fn job(&self) -> &Job {
        &self.job
    }

    /// Tells how the leader ended, from the moment somebody here noticed.
    pub(in crate::process) fn subscribe(&self) -> watch::Receiver<Option<Exit>> {
        self.exit.clone()
    }

    /// How the leader ended, if it has by now.
    pub(in crate::process) fn look(&self) -> Option<Exit> {
        *self.exit.borrow()
    }

    /// How the leader ended, once it has. Can be dropped and called again.
    pub(in crate::process) async fn left(&mut self) -> Exit {
        // The sender goes only after it has sent.
        self.exit
            .wait_for(Option::is_some)
            .await
            .map_or_else(|_| Exit::default(), |exit| exit.unwrap_or_default())
    }

    /// Nothing is left to do: the job goes with its handle, and the number of a job is nobody's.
    #[expect(clippy::unused_self, reason = "elsewhere the leader is a zombie until then")]
    pub(in crate::process) const fn reap(&mut self) {}
}
