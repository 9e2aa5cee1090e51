//! The floor of a start: the process, the lines of a handshake and of `tools/list`, the end of its input and its end, by blocking calls.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Prints the median of so many starts, one after the other, in nanoseconds.
pub fn measure(rounds: usize) -> io::Result<()> {
    let mut times = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let begun = Instant::now();
        start()?;
        times.push(begun.elapsed().as_nanos());
    }
    times.sort_unstable();
    println!("{}", times[rounds / 2]);
    Ok(())
}

fn start() -> io::Result<()> {
    let mut child = Command::new(std::env::current_exe()?)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let gone = || io::Error::other("the child has no pipes");
    let mut input = child.stdin.take().ok_or_else(gone)?;
    let mut output = BufReader::new(child.stdout.take().ok_or_else(gone)?);
    for request in [INITIALIZE, LIST] {
        input.write_all(request)?;
        if output.read_line(&mut String::new())? == 0 {
            return Err(io::Error::other("the child ended without an answer"));
        }
    }
    drop(input);
    child.wait()?;
    Ok(())
}

const INITIALIZE: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"floor","version":"1.0.0"}}}
"#;

const LIST: &[u8] = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
"#;
