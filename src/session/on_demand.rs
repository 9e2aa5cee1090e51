//! A session that is opened when it is needed: once however many callers race, shared by all of them, and again after it was lost.
//!
//! The opening is nobody's: it goes on when whoever asked for it first gives up. After a failure callers get that
//! failure for a while, each time twice as long, so that fifty callers in a loop are one attempt at a time and few of
//! them (BR-83).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};

use super::{Owner, Plan, Reason, Session, connect};
use crate::error::{ErrorCode, McpError};

/// How long a failure is the answer: the first time, and at most.
const FIRST_GAP: Duration = Duration::from_millis(100);
const LONGEST_GAP: Duration = Duration::from_secs(5);

type Opened = Result<Session, McpError>;

/// Where callers of one server find its session. Clones are handles of one.
#[derive(Clone)]
pub struct OnDemand(Arc<Inner>);

struct Inner {
    server: String,
    runtime: Handle,
    plan: Box<dyn Fn() -> Result<Plan, McpError> + Send + Sync>,
    owner: Arc<dyn Owner>,
    state: Mutex<State>,
}

struct State {
    stage: Stage,
    /// How long the next failure will be the answer.
    gap: Duration,
    /// Sessions that were lost or closed and whose servers may still be about to go.
    ending: Vec<Session>,
}

enum Stage {
    Absent,
    Opening {
        opening: Opening,
        /// Dropped, it stops the opening.
        _going_on: oneshot::Sender<()>,
    },
    Open(Session),
    Failed {
        error: McpError,
        until: Instant,
    },
    /// With the opening that it stopped.
    Closed(Option<Opening>),
}

/// What a caller finds.
pub enum Access {
    Open(Session),
    Opening(Opening),
    Failed(McpError),
}

/// A session that is about to be there.
#[derive(Clone)]
pub struct Opening(watch::Receiver<Option<Opened>>);

impl Opening {
    /// By a fault of ours (a panic): nothing comes of it any more.
    fn is_lost(&self) -> bool {
        self.0.has_changed().is_err()
    }

    /// Waits for it. Dropping the future changes nothing for others.
    pub async fn opened(mut self) -> Opened {
        let dropped =
            || Err(McpError::new(ErrorCode::Internal, "The opening was dropped; please report this."));
        match self.0.wait_for(Option::is_some).await {
            Ok(opened) => opened.clone().unwrap_or_else(dropped),
            Err(_) => dropped(),
        }
    }
}

impl OnDemand {
    /// `plan` is asked for each opening; what it refuses is no attempt.
    pub fn new(
        server: &str,
        runtime: Handle,
        owner: Arc<dyn Owner>,
        plan: impl Fn() -> Result<Plan, McpError> + Send + Sync + 'static,
    ) -> Self {
        let state = State { stage: Stage::Absent, gap: FIRST_GAP, ending: Vec::new() };
        let inner = Inner {
            server: server.to_owned(),
            runtime,
            plan: Box::new(plan),
            owner,
            state: Mutex::new(state),
        };
        Self(Arc::new(inner))
    }

    /// The session; where there is none it is opened, unless that has failed a moment ago.
    #[must_use]
    pub fn access(&self) -> Access {
        let mut state = self.0.lock();
        match &state.stage {
            Stage::Closed(_) => return Access::Failed(self.0.closed_error()),
            Stage::Opening { opening, .. } if !opening.is_lost() => return Access::Opening(opening.clone()),
            Stage::Open(session) if !session.is_gone() => return Access::Open(session.clone()),
            Stage::Failed { error, until } if Instant::now() < *until => {
                return Access::Failed(error.clone());
            }
            Stage::Open(session) => {
                let session = session.clone();
                state.ending.retain(|ending| !ending.has_ended());
                state.ending.push(session);
            }
            Stage::Absent | Stage::Failed { .. } | Stage::Opening { .. } => {}
        }
        match (self.0.plan)() {
            Ok(plan) => Access::Opening(self.open(&mut state, plan)),
            Err(error) => {
                state.stage = Stage::Absent;
                Access::Failed(error.of_server(&self.0.server))
            }
        }
    }

    #[must_use]
    pub fn is_closed(&self) -> bool {
        matches!(self.0.lock().stage, Stage::Closed(_))
    }

    /// Ends it for good: pending calls and an opening reject at once; the future resolves when nothing is left, whoever else closes it.
    pub fn close(&self, reason: Reason) -> impl Future<Output = ()> + Send + 'static {
        let mut state = self.0.lock();
        // An opening stops when the other end of its stage is dropped.
        let (opening, open) = match std::mem::replace(&mut state.stage, Stage::Absent) {
            Stage::Opening { opening, .. } => (Some(opening), None),
            Stage::Closed(opening) => (opening, None),
            Stage::Open(session) => (None, Some(session)),
            Stage::Absent | Stage::Failed { .. } => (None, None),
        };
        state.stage = Stage::Closed(opening.clone());
        state.ending.extend(open.clone());
        let mut ending = state.ending.clone();
        drop(state);
        // What it settles may ask for access again.
        if let Some(session) = open {
            session.close(reason);
        }
        async move {
            if let Some(opening) = opening
                && let Ok(session) = opening.opened().await
            {
                session.close(reason);
                ending.push(session);
            }
            for session in ending {
                session.closed().await;
            }
        }
    }

    fn open(&self, state: &mut State, plan: Plan) -> Opening {
        let (sender, opened) = watch::channel(None);
        let (going_on, stopped) = oneshot::channel::<()>();
        let opening = Opening(opened);
        state.stage = Stage::Opening { opening: opening.clone(), _going_on: going_on };
        // Not the handle itself: an opening must not keep alive what nobody needs any more.
        let (inner, owner) = (Arc::downgrade(&self.0), self.0.owner.clone());
        self.0.runtime.spawn(async move {
            let outcome = connect(plan, owner, async { drop(stopped.await) }).await;
            let outcome = outcome.map(|(session, _)| session);
            match inner.upgrade() {
                Some(inner) => inner.settle(&outcome),
                // Nobody will ever call it.
                None => outcome.iter().for_each(|session| session.close(Reason::Aborted)),
            }
            sender.send_replace(Some(outcome));
        });
        opening
    }
}

impl Inner {
    fn settle(&self, outcome: &Opened) {
        let mut state = self.lock();
        if matches!(state.stage, Stage::Closed(_)) {
            // Whoever closed it takes the session from the opening.
            return;
        }
        state.stage = match outcome {
            Ok(session) => {
                state.gap = FIRST_GAP;
                Stage::Open(session.clone())
            }
            Err(error) => {
                let gap = state.gap;
                state.gap = (gap * 2).min(LONGEST_GAP);
                Stage::Failed { error: error.clone(), until: Instant::now() + gap }
            }
        };
    }

    fn closed_error(&self) -> McpError {
        let message = format!("The project of the server {} is closed.", self.server);
        McpError::new(ErrorCode::Closed, message).of_server(&self.server)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
