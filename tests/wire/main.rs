//! Arbitrary bytes from a server, cut anywhere, with callers that call, give up and close at any moment: no panic,
//! every call settles, each with its own answer, and memory stays within the limits.
//!
//! The fuzz targets of `fuzz/` play the same scripts, for longer and guided by coverage; the inputs they found are played here, too.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod framing;
mod script;
mod stream;

use std::cell::Cell;
use std::path::Path;
use std::sync::Once;

use stream::Random;

/// Enough for every step to meet every other one, in a few seconds without optimisation.
const SCRIPTS: u64 = 4_000;
const STREAMS: u64 = 4_000;

thread_local! {
    static PANICKED: Cell<bool> = const { Cell::new(false) };
}

/// Plays each input and names the first that breaks a promise. A panic in a task of the session, which the runtime
/// keeps to itself, counts, too.
fn each(inputs: impl IntoIterator<Item = (String, Vec<u8>)>, play: fn(&[u8])) {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            PANICKED.set(true);
            report(panic);
        }));
    });
    for (name, input) in inputs {
        let outcome = std::panic::catch_unwind(|| play(&input));
        assert!(outcome.is_ok() && !PANICKED.get(), "{name}: {}", input.escape_ascii());
    }
}

/// What the fuzz targets have found worth keeping.
fn corpus(target: &str) -> impl Iterator<Item = (String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(!paths.is_empty());
    paths.sort();
    paths.into_iter().map(|path| (path.display().to_string(), std::fs::read(path).unwrap()))
}

#[test]
fn any_script_of_a_server_and_its_callers_keeps_every_promise() {
    let random = (0..SCRIPTS).map(|seed| {
        let mut random = Random(seed);
        let length = 1 + random.below(160);
        (format!("seed {seed}"), (0..length).map(|_| random.next().to_le_bytes()[0]).collect())
    });
    each(corpus("session").chain(random), script::play);
}

#[test]
fn any_bytes_are_taken_in_the_same_wherever_the_reads_are_cut() {
    let random = (0..STREAMS).map(|seed| {
        let mut random = Random(seed);
        let mut input = random.next().to_le_bytes()[..2].to_vec();
        for _ in 0..=random.below(4) {
            let mut line = Vec::new();
            stream::object(&mut random, 0, &mut line);
            stream::damage(&mut random, &mut line);
            input.extend(line);
            input.push(b'\n');
        }
        (format!("seed {seed}"), input)
    });
    each(corpus("framing").chain(random), framing::check);
}
