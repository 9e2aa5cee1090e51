#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::Read;
use std::os::fd::OwnedFd;

use super::*;

fn pipe() -> (Arc<Pipe>, std::io::PipeReader) {
    let (reader, writer) = std::io::pipe().unwrap();
    let writer = OwnedFd::from(writer);
    rustix::io::ioctl_fionbio(&writer, true).unwrap();
    let pipe = Arc::new(Pipe::new(writer).unwrap());
    let runs = pipe.clone();
    tokio::spawn(async move { runs.run().await });
    (pipe, reader)
}

fn frame(id: u64, length: usize) -> Frame {
    let id_text = id.to_string();
    Frame { kind: FrameKind::Request(id), text: format!("{id_text}{}", "x".repeat(length - id_text.len())) }
}

async fn read_all(mut reader: std::io::PipeReader) -> String {
    let read = tokio::task::spawn_blocking(move || {
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        text
    });
    read.await.unwrap()
}

async fn until_empty(pipe: &Pipe) {
    while !pipe.lock().queue.is_empty() {
        tokio::task::yield_now().await;
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn frames_arrive_whole_and_in_order_however_full_the_pipe_is() {
    let (pipe, reader) = pipe();
    let read = tokio::spawn(read_all(reader));
    let mut expected = String::new();
    for id in 0..200 {
        let frame = frame(id, 5_000);
        expected.push_str(&frame.text);
        expected.push('\n');
        assert_eq!(pipe.send(frame), Sent::Taken);
    }
    until_empty(&pipe).await;
    pipe.end();
    assert!(read.await.unwrap() == expected, "frames were mixed or lost");
    assert_eq!(pipe.bytes(), expected.len() as u64);
    assert_eq!(pipe.send(frame(1, 5)), Sent::Gone);
}

#[tokio::test]
async fn what_is_not_begun_can_be_taken_back_and_what_is_begun_is_finished() {
    let (pipe, reader) = pipe();
    // Fills the kernel's buffer: nobody reads yet.
    pipe.send(frame(1, 1 << 20));
    pipe.send(frame(2, 10));
    pipe.send(frame(3, 10));
    while pipe.bytes() == 0 {
        tokio::task::yield_now().await;
    }
    assert!(!pipe.withdraw(1), "partly written");
    assert!(pipe.withdraw(2));
    assert!(!pipe.withdraw(2), "gone already");
    let read = tokio::spawn(read_all(reader));
    until_empty(&pipe).await;
    pipe.end();
    let text = read.await.unwrap();
    let lines: Vec<_> = text.lines().map(|line| (&line[..1], line.len())).collect();
    assert_eq!(lines, [("1", 1 << 20), ("3", 10)]);
}

#[tokio::test]
async fn ending_waits_for_no_write_and_closes_the_input() {
    let (pipe, reader) = pipe();
    pipe.send(frame(1, 1 << 20));
    pipe.end();
    assert_eq!(pipe.send(frame(2, 10)), Sent::Gone);
    assert!(read_all(reader).await.len() < 1 << 20);
}

#[tokio::test]
async fn answers_to_a_server_that_does_not_read_are_bounded() {
    let (pipe, _reader) = pipe();
    pipe.send(frame(1, 1 << 20));
    for _ in 0..10_000 {
        pipe.send(Frame { kind: FrameKind::Answer, text: "pong".into() });
    }
    assert!(pipe.lock().queue.len() <= ANSWERS_MAX + 1);
}

#[tokio::test]
async fn answers_that_repeat_long_ids_are_bounded_too() {
    let (pipe, _reader) = pipe();
    pipe.send(frame(1, 1 << 20));
    for _ in 0..10 {
        pipe.send(Frame { kind: FrameKind::Answer, text: "x".repeat(ANSWER_BYTES_MAX / 2) });
    }
    assert!(pipe.lock().answer_bytes <= ANSWER_BYTES_MAX);
}

#[tokio::test]
async fn no_notification_is_dropped_however_many_wait() {
    let (pipe, reader) = pipe();
    pipe.send(frame(1, 1 << 20));
    for _ in 0..10 * ANSWERS_MAX {
        pipe.send(Frame { kind: FrameKind::Notification, text: "n".into() });
    }
    let read = tokio::spawn(read_all(reader));
    until_empty(&pipe).await;
    pipe.end();
    assert_eq!(read.await.unwrap().lines().filter(|line| *line == "n").count(), 10 * ANSWERS_MAX);
}

#[tokio::test]
async fn a_reader_that_is_gone_is_no_signal_and_noticed_without_a_write() {
    let (pipe, reader) = pipe();
    drop(reader);
    assert!(pipe.run().await, "it did not end by itself");
    assert_eq!(pipe.send(frame(1, 10)), Sent::Gone);
}

#[tokio::test]
async fn an_end_that_was_asked_for_is_not_taken_for_a_reader_that_is_gone() {
    let (pipe, _reader) = pipe();
    pipe.end();
    assert!(!pipe.run().await);
}
