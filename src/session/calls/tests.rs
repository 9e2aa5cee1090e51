#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::mpsc::{Receiver, channel};

use super::*;

fn terms(timeout: u64) -> Terms {
    let timeout = Some(Duration::from_millis(timeout));
    Terms::within("call", timeout)
}

fn begin(calls: &Calls, terms: Terms) -> (Option<u64>, Receiver<Outcome>) {
    let (sender, receiver) = channel();
    (calls.begin(terms, Settle::new(move |outcome| drop(sender.send(outcome)))), receiver)
}

#[test]
fn each_answer_reaches_its_own_call() {
    let calls = Calls::default();
    let pending: Vec<_> = (0..100).map(|_| begin(&calls, terms(60_000))).collect();
    for (id, _) in pending.iter().rev() {
        calls.answered(&AnswerId::Number(id.unwrap()), Ok(id.unwrap().to_string().into()));
    }
    for (id, outcome) in pending {
        assert_eq!(*outcome.recv().unwrap().unwrap(), id.unwrap().to_string());
    }
    assert_eq!(calls.counts(), (0, 100, 0));
}

#[test]
fn an_error_without_an_id_is_the_only_pending_calls_own() {
    let calls = Calls::default();
    let error = || Err(McpError::new(ErrorCode::Rpc, "no"));
    let (_, first) = begin(&calls, terms(60_000));
    let (_, second) = begin(&calls, terms(60_000));
    calls.answered(&AnswerId::Absent, error());
    assert!(first.try_recv().is_err() && second.try_recv().is_err());
    calls.answered(&AnswerId::Number(2), Ok("{}".into()));
    calls.answered(&AnswerId::Absent, Ok("{}".into()));
    assert!(first.try_recv().is_err());
    calls.answered(&AnswerId::Absent, error());
    assert_eq!(first.recv().unwrap().unwrap_err().code, ErrorCode::Rpc);
    assert_eq!(calls.counts(), (0, 2, 2));
}

#[test]
fn the_end_settles_what_is_pending_and_what_comes_later() {
    let calls = Calls::default();
    let (_, pending) = begin(&calls, terms(60_000));
    let (exited, closed) = (McpError::new(ErrorCode::Exited, ""), McpError::new(ErrorCode::Closed, ""));
    calls.end(&exited, &closed);
    calls.end(&closed, &exited);
    assert_eq!(pending.recv().unwrap().unwrap_err().code, ErrorCode::Exited);
    let (id, later) = begin(&calls, terms(60_000));
    assert_eq!((id, later.recv().unwrap().unwrap_err().code), (None, ErrorCode::Closed));
}

#[test]
fn a_dropped_call_settles_too() {
    let calls = Calls::default();
    let (_, pending) = begin(&calls, terms(60_000));
    drop(calls);
    assert_eq!(pending.recv().unwrap().unwrap_err().code, ErrorCode::Internal);
}

#[tokio::test]
async fn a_call_that_waited_for_its_session_has_waited_already() {
    let calls = Arc::new(Calls::default());
    let (sender, mut expired) = tokio::sync::mpsc::unbounded_channel();
    let keeper = calls.clone();
    let task =
        tokio::spawn(
            async move { keeper.keep_deadlines(|| {}, |call| sender.send(call.waited).unwrap()).await },
        );
    let begun = Instant::now().checked_sub(Duration::from_secs(1));
    begin(&calls, Terms { begun, ..terms(1_000) });
    assert_eq!(expired.recv().await, Some(Duration::from_secs(1)));
    let closed = McpError::new(ErrorCode::Closed, "");
    calls.end(&closed, &closed);
    task.await.unwrap();
}

#[tokio::test]
async fn a_shorter_deadline_that_comes_later_passes_first() {
    let calls = Arc::new(Calls::default());
    let (sender, mut expired) = tokio::sync::mpsc::unbounded_channel();
    let keeper = calls.clone();
    let task =
        tokio::spawn(async move { keeper.keep_deadlines(|| {}, |call| sender.send(call.id).unwrap()).await });
    begin(&calls, terms(200));
    tokio::task::yield_now().await;
    begin(&calls, terms(20));
    assert_eq!(expired.recv().await, Some(2));
    assert_eq!(expired.recv().await, Some(1));
    let closed = McpError::new(ErrorCode::Closed, "");
    calls.end(&closed, &closed);
    task.await.unwrap();
}

#[tokio::test]
async fn progress_restarts_the_timeout_but_not_the_total() {
    let calls = Arc::new(Calls::default());
    let keeper = calls.clone();
    let (sender, mut expired) = tokio::sync::mpsc::unbounded_channel();
    let keep = async move {
        keeper.keep_deadlines(|| {}, |call| sender.send((call.waited, call.is_total)).unwrap()).await;
    };
    let task = tokio::spawn(keep);
    let total = Duration::from_millis(400);
    let reset = Terms { reset_on_progress: true, total: Some(total), ..terms(200) };
    let (id, _outcome) = begin(&calls, reset);
    let progress = async {
        loop {
            tokio::time::sleep(Duration::from_millis(20)).await;
            calls.progressed(id.unwrap());
        }
    };
    let expired = tokio::select! { expired = expired.recv() => expired, () = progress => unreachable!() };
    assert_eq!(expired, Some((total, true)));
    let closed = McpError::new(ErrorCode::Closed, "");
    calls.end(&closed, &closed);
    task.await.unwrap();
}

#[test]
fn a_call_that_is_sent_again_is_one_call_under_both_ids() {
    let calls = Calls::default();
    let (id, answered) = begin(&calls, terms(60_000));
    let again = calls.again(id.unwrap()).unwrap();
    assert_eq!((again, calls.counts()), (2, (1, 2, 0)));
    assert_eq!(calls.again(again), None, "once, and no more");
    assert_eq!(calls.again(1), None);
    // The late answer to the first is nobody's.
    calls.answered(&AnswerId::Number(again), Ok("{}".into()));
    assert_eq!(&*answered.recv().unwrap().unwrap(), "{}");
    let (id, _given_up) = begin(&calls, terms(60_000));
    let again = calls.again(id.unwrap()).unwrap();
    let (known, settle) = calls.withdraw(id.unwrap()).unwrap();
    settle.forget();
    assert_eq!(known, again, "its caller knows the first id, the server the second");
    assert_eq!(calls.counts().0, 0);
}
