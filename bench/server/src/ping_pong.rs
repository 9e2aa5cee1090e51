//! The floor of a small call: one line to another process and back, over pipes, by blocking calls, with nothing in between.

use std::io::{self, Read, Write};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Prints the median and the 99th percentile of so many rounds, and the CPU time that a round takes on this side, in
/// nanoseconds, as JSON. The child is held to a core, if one is given.
pub fn measure(rounds: usize, bytes: usize, core: Option<usize>) -> io::Result<()> {
    let mut child = echo_lines_on(core)?.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let gone = || io::Error::other("the child has no pipes");
    let (mut input, mut output) =
        (child.stdin.take().ok_or_else(gone)?, child.stdout.take().ok_or_else(gone)?);
    let line = vec![b'x'; bytes];
    let mut back = vec![0; bytes];
    let mut times = Vec::with_capacity(rounds);
    let cpu = cpu_time()?;
    for _ in 0..rounds {
        let begun = Instant::now();
        input.write_all(&line)?;
        output.read_exact(&mut back)?;
        times.push(begun.elapsed().as_nanos());
    }
    let cpu = (cpu_time()? - cpu) / rounds as u64;
    drop(input);
    child.wait()?;
    times.sort_unstable();
    println!(r#"{{"p50":{},"p99":{},"cpu":{cpu}}}"#, times[rounds / 2], times[rounds * 99 / 100]);
    Ok(())
}

fn echo_lines_on(core: Option<usize>) -> io::Result<Command> {
    let program = std::env::current_exe()?;
    let mut command = match core {
        Some(core) => {
            let mut command = Command::new("taskset");
            command.arg("--cpu-list").arg(core.to_string()).arg(program);
            command
        }
        None => Command::new(program),
    };
    command.arg("echo-lines");
    Ok(command)
}

/// Of this thread, in nanoseconds: what bench/meters.mjs reads for the clients.
fn cpu_time() -> io::Result<u64> {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let first = told.split(' ').next().and_then(|text| text.parse().ok());
    first.ok_or_else(|| io::Error::other("the kernel keeps no schedstat"))
}

/// Sends back what comes.
pub fn echo_lines() -> io::Result<()> {
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = input.read(&mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        output.write_all(&buffer[..count])?;
        output.flush()?;
    }
}
