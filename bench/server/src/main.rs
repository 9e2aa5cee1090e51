//! The server that `npm run bench` calls: it does next to nothing, so that what is measured is the client.
//!
//! - `bench-server [--tools K --schema BYTES]` — MCP over stdio, with K more tools whose schemas are that long
//! - `bench-server --http` — the same over streamable HTTP; prints its port
//! - `bench-server ping-pong ROUNDS BYTES [CORE]` — the floor of a call: lines to a child that sends them back, blocking, in nanoseconds
//! - `bench-server echo-lines` — that child
//! - `bench-server bare-starts ROUNDS` — the floor of a start, in nanoseconds

mod bare_start;
mod http;
mod ping_pong;
mod stdio;
mod tools;

use std::env;
use std::io;
use std::sync::Arc;

use tools::Tools;

fn main() -> io::Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let number = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1)?.parse().ok()
    };
    match arguments.first().map(String::as_str) {
        Some("ping-pong") => {
            let numbers: Vec<usize> =
                arguments[1..].iter().filter_map(|argument| argument.parse().ok()).collect();
            match numbers[..] {
                [rounds, bytes] => ping_pong::measure(rounds, bytes, None),
                [rounds, bytes, core] => ping_pong::measure(rounds, bytes, Some(core)),
                _ => Err(io::Error::other("ping-pong wants ROUNDS BYTES [CORE]")),
            }
        }
        Some("echo-lines") => ping_pong::echo_lines(),
        Some("bare-starts") => {
            let rounds = number("bare-starts").filter(|rounds| *rounds > 0);
            bare_start::measure(rounds.ok_or_else(|| io::Error::other("bare-starts wants ROUNDS"))?)
        }
        _ => {
            let tools =
                Arc::new(Tools::new(number("--tools").unwrap_or(0), number("--schema").unwrap_or(100)));
            if arguments.iter().any(|argument| argument == "--http") {
                http::serve(tools)
            } else {
                stdio::serve(&tools)
            }
        }
    }
}
