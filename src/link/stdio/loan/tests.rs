#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{PipeWriter, Write};

use serde_json::Value;

use super::super::noise::Noise;
use super::super::traffic::LENT_MAX;
use super::*;
use crate::link::Arrival;
use crate::policy::redact::Redactor;

#[derive(Default)]
struct Heard(Mutex<Vec<String>>);

impl Receiver for Heard {
    fn arrived(&self, arrival: Arrival) {
        let Arrival::Message(message) = arrival else { panic!("no message") };
        let crate::link::envelope::Message::Notification { method, .. } = message else {
            panic!("a panic on purpose")
        };
        self.0.lock().unwrap().push(method);
    }

    fn stderr_line(&self, _line: String) {}
    fn warning(&self, _code: &'static str, _message: &str, _details: Vec<(&'static str, Value)>) {}
}

fn lent() -> (Loan, PipeWriter, Arc<Heard>) {
    lent_up_to(1 << 20)
}

fn lent_up_to(limit: usize) -> (Loan, PipeWriter, Arc<Heard>) {
    let (reader, writer) = io::pipe().unwrap();
    let reader = OwnedFd::from(reader);
    rustix::io::ioctl_fionbio(&reader, true).unwrap();
    let noise = Arc::new(Noise::new(Redactor::new(&[])));
    let intake = Intake::new("s".to_owned(), limit, noise);
    let heard = Arc::<Heard>::default();
    (Loan::new(reader, intake, heard.clone(), traffic()), writer, heard)
}

fn line(method: impl std::fmt::Display) -> String {
    format!("{{\"method\":\"{method}\"}}\n")
}

/// Of calls that come one after the other.
fn traffic() -> Arc<Traffic> {
    let traffic = Arc::<Traffic>::default();
    while !traffic.is_sequential() {
        traffic.asked(0);
    }
    traffic
}

async fn is_over(loan: &Loan) -> bool {
    tokio::time::timeout(std::time::Duration::ZERO, loan.ended()).await.is_ok()
}

#[tokio::test]
async fn lines_are_handed_up_in_pieces_too_and_the_beginning_of_one_goes_back_with_the_pipe() {
    let (loan, mut writer, heard) = lent();
    assert!(loan.read(), "nothing is there yet");
    writer.write_all(line("a").as_bytes()).unwrap();
    assert!(loan.read());
    writer.write_all(format!("{}{{\"meth", line("b")).as_bytes()).unwrap();
    assert!(loan.read());
    writer.write_all(b"od\":\"c\"}\n{\"method\"").unwrap();
    assert!(loan.read());
    assert_eq!(*heard.0.lock().unwrap(), ["a", "b", "c"]);
    assert!(!is_over(&loan).await);
    let Returned { end, mut intake, breach, answers } = loan.take().unwrap();
    assert_eq!((breach, answers), (None, 0));
    writer.write_all(b":\"d\"}\n").unwrap();
    read_now(&end, intake.space()).unwrap();
    intake.deliver(&*heard).await.unwrap();
    assert_eq!(*heard.0.lock().unwrap(), ["a", "b", "c", "d"]);
    assert!(!loan.read() && loan.take().is_none() && loan.descriptor().is_err());
}

#[tokio::test]
async fn a_line_that_becomes_long_ends_it_while_it_comes() {
    let (loan, mut writer, _) = lent();
    let piece = vec![b' '; LENT_MAX / 4];
    for _ in 0..4 {
        writer.write_all(&piece).unwrap();
        assert!(loan.read());
    }
    writer.write_all(b" ").unwrap();
    assert!(!loan.read());
    assert!(is_over(&loan).await);
    assert_eq!(loan.take().unwrap().intake.length(), LENT_MAX + 1);
}

#[tokio::test]
async fn a_line_over_the_limit_ends_it_at_once() {
    let (loan, mut writer, _) = lent_up_to(100);
    writer.write_all(&[b' '; 100]).unwrap();
    assert!(loan.read());
    writer.write_all(b" ").unwrap();
    assert!(!loan.read());
    assert!(is_over(&loan).await);
}

#[tokio::test]
async fn what_has_come_is_read_in_the_borrowers_place_too() {
    let (loan, mut writer, heard) = lent();
    assert!(!loan.has_more());
    writer.write_all(line("a").as_bytes()).unwrap();
    assert!(loan.has_more());
    assert!(!loan.has_more());
    assert!(!is_over(&loan).await, "it stays lent");
    drop(writer);
    assert!(!loan.has_more());
    assert!(is_over(&loan).await);
    assert_eq!(*heard.0.lock().unwrap(), ["a"]);
}

#[tokio::test]
async fn the_end_of_the_pipe_is_left_to_be_found() {
    let (loan, writer, _) = lent();
    drop(writer);
    assert!(!loan.read());
    assert!(is_over(&loan).await);
    let Returned { end, mut intake, .. } = loan.take().unwrap();
    assert_eq!(read_now(&end, intake.space()).unwrap(), 0);
}

#[tokio::test]
async fn much_at_once_and_a_server_that_talks_unasked_end_it() {
    let (loan, mut writer, heard) = lent();
    let many = UNASKED_MAX as usize + 1;
    writer.write_all(line("a").repeat(many - 1).as_bytes()).unwrap();
    assert!(loan.read());
    writer.write_all(line("b").repeat(many).as_bytes()).unwrap();
    assert!(!loan.read());
    assert_eq!(heard.0.lock().unwrap().len(), 2 * many - 1);

    let (loan, mut writer, heard) = lent();
    let mut reads = 0;
    while {
        writer.write_all(line(reads).as_bytes()).unwrap();
        reads += 1;
        loan.read()
    } {}
    assert_eq!(reads, UNASKED_MAX + 1);
    assert_eq!(heard.0.lock().unwrap().len(), reads as usize);
    assert_eq!(loan.reads(), u64::from(reads));
}

#[tokio::test]
#[should_panic(expected = "a panic on purpose")]
async fn a_panic_stays_away_from_the_host_and_comes_out_where_the_loan_is_taken_back() {
    let (loan, mut writer, _) = lent();
    writer.write_all(b"{\"id\":1,\"result\":{}}\n").unwrap();
    assert!(!loan.read());
    assert!(is_over(&loan).await);
    loan.take();
}

#[tokio::test]
async fn a_server_that_writes_as_fast_as_it_is_read_does_not_keep_who_reads() {
    let (loan, mut writer, _) = lent();
    let flood = std::thread::spawn(move || {
        let line = format!("{{\"x\":\"{}\",\"method\":\"a\"}}\n", "x".repeat(20_000));
        while writer.write_all(line.as_bytes()).is_ok() {}
    });
    while loan.read() {}
    assert!(is_over(&loan).await);
    drop(loan);
    flood.join().unwrap();
}
