//! What must be true of a session in the end, whatever its server wrote and its callers did.

use std::collections::HashSet;

use serde_json::Value;
use workflow_mcp::error::ErrorCode;
use workflow_mcp::link::FrameKind;
use workflow_mcp::session::calls::{Outcome, Settle, Terms};
use workflow_mcp::session::{Asked, Reason};

use super::reader::{Written, messages};
use super::stage::{LONG, Stage};

/// Ends the session and judges it.
pub(crate) async fn end(mut stage: Stage) {
    stage.link.set_deaf(false);
    drop(stage.stop.take());
    if let Some(starting) = stage.starting.take() {
        let started = tokio::time::timeout(LONG, starting).await.expect("a start settles").unwrap();
        stage.session = started.ok().map(|(session, _)| session);
    }
    let was_connected = stage.session.is_some();
    if let Some(session) = stage.session.take() {
        session.close(Reason::Closed);
        let info = tokio::time::timeout(LONG, session.closed()).await.expect("a session ends");
        if stage.is_closed {
            assert!(matches!(info.reason, Reason::Closed | Reason::Exited | Reason::ProtocolError));
        }
        let (sender, later) = std::sync::mpsc::channel();
        let settle = Settle::new(move |outcome| drop(sender.send(outcome)));
        let terms = Terms::within("call", None);
        assert_eq!(session.call_tool("a", "{}", Asked { terms, meta: None }, settle), None);
        let code = later.try_recv().expect("a call after the end settles at once").unwrap_err().code;
        assert_eq!(code, ErrorCode::Closed);
        let diagnostics = session.diagnostics();
        assert_eq!(diagnostics["pendingRequests"], 0);
    }
    for _ in 0..32 {
        tokio::task::yield_now().await;
    }
    if was_connected {
        assert_eq!(
            tokio::runtime::Handle::current().metrics().num_alive_tasks(),
            0,
            "a task outlives its session"
        );
    }
    assert_eq!(stage.heard.lock().unwrap().closed, usize::from(was_connected), "the end is told once");
    assert!(
        was_connected || stage.heard.lock().unwrap().lists.is_empty(),
        "a list of what never was connected"
    );
    let text = String::from_utf8_lossy(&stage.server.written);
    let written: Vec<_> = text.split('\n').flat_map(messages).collect();
    judge_calls(&stage, &written);
    judge_frames(&stage, &written);
}

/// Every call has settled, with what the server wrote for it.
fn judge_calls(stage: &Stage, written: &[Written<'_>]) {
    for call in &stage.calls {
        let slot = call.slot.lock().unwrap();
        assert_ne!(slot.outcome.is_none(), !slot.is_cancelled, "a call neither settled nor was given up");
        let Some((outcome, id)) = slot.outcome.as_ref().zip(call.id) else { continue };
        assert!(
            is_justified(outcome, id, stage, written),
            "call {id} settled with {outcome:?}, which nothing says that was written"
        );
    }
    for list in &stage.heard.lock().unwrap().lists {
        assert!(serde_json::from_str::<Vec<&serde_json::value::RawValue>>(list).is_ok(), "{list}");
    }
}

fn is_justified(outcome: &Outcome, id: u64, stage: &Stage, written: &[Written<'_>]) -> bool {
    let answers = |message: &&Written<'_>| message.number() == Some(id);
    match outcome {
        Ok(result) => written.iter().filter(answers).any(|message| message.result == Some(result)),
        Err(error) => match error.code {
            ErrorCode::Rpc => written
                .iter()
                .filter(|message| answers(message) || message.is_without_id())
                .any(|message| message.error.is_some()),
            ErrorCode::MessageTooLarge => stage.server.written.len() > super::stage::LIMIT,
            ErrorCode::Exited => stage.server.is_gone,
            ErrorCode::Timeout | ErrorCode::Closed => true,
            _ => false,
        },
    }
}

/// Each frame is one line of JSON, ids are used once, a cancellation follows its request, and nothing answers what was no request.
fn judge_frames(stage: &Stage, written: &[Written<'_>]) {
    let (mut requested, mut cancelled, mut answers) = (HashSet::new(), HashSet::new(), 0);
    let mut is_modern = false;
    for (kind, text) in stage.link.read_from(0) {
        assert!(!text.contains('\n'), "{text}");
        let frame = messages(&text);
        let frame = frame.first().expect("a frame is a JSON object");
        match kind {
            FrameKind::Request(id) => {
                assert_eq!(frame.number(), Some(id));
                assert!(requested.insert(id), "the id {id} is used twice");
                is_modern |= frame.method == Some(r#""subscriptions/listen""#);
            }
            FrameKind::Notification if frame.method == Some(r#""notifications/cancelled""#) => {
                let params: Value = serde_json::from_str(frame.params.unwrap()).unwrap();
                let id = params["requestId"].as_u64().unwrap();
                assert!(requested.contains(&id), "{id} was never requested");
                assert!(id > 1, "initialize is not cancelled");
                assert!(cancelled.insert(id), "{id} is cancelled twice");
            }
            FrameKind::Notification => {}
            FrameKind::Answer => {
                answers += 1;
                assert!(!is_modern, "a modern server is sent no answer: {text}");
            }
        }
    }
    let asked = written.iter().filter(|message| message.is_request()).count();
    assert!(answers <= asked, "{answers} answers to {asked} requests");
}
