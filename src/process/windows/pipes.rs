//! The host's ends of a server's pipes: named pipes, since anonymous ones cannot be overlapped.

use std::fs::OpenOptions;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind};
use std::os::windows::io::OwnedHandle;
use std::time::Duration;

use tokio::net::windows::named_pipe::{NamedPipeServer, ServerOptions};
use tokio::time::timeout;

/// An end as a spawn gives it.
pub type End = NamedPipeServer;
pub type Input = NamedPipeServer;
pub type Output = NamedPipeServer;

/// How long `output_now` waits for the runtime to learn of what has come.
const LEARNING: Duration = Duration::from_millis(20);

/// Which way a pipe leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    ToServer,
    FromServer,
}

/// The way to a server's stdin.
///
/// It takes a frame whole and writes it in the background, also after it was dropped: a server that does not read sees the end
/// of its input only behind that frame.
pub const fn input(end: End) -> io::Result<Input> {
    Ok(end)
}

/// What a server writes.
pub const fn output(end: End) -> io::Result<Output> {
    Ok(end)
}

/// Named pipes have the room that they were made with.
pub const fn widen(_output: &Output) {}

/// Waits until nobody is left who could read what is written.
///
/// The runtime reads from this pipe, too, which is why it leads both ways. The server cannot write to it: what is read is its end.
pub async fn unread(input: &Input) {
    let _ = input.readable().await;
}

/// Appends what is there now to the spare room of `buffer`; `WouldBlock` if that is nothing.
///
/// The runtime always has a read under way, so nobody can ask the pipe itself: what that read has brought is only known once
/// the runtime has polled, and the next begins after that.
pub async fn output_now(output: &Output, buffer: &mut Vec<u8>) -> io::Result<usize> {
    let read = async {
        loop {
            output.readable().await?;
            match output.try_read_buf(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                read => return read,
            }
        }
    };
    timeout(LEARNING, read).await.unwrap_or_else(|_| Err(ErrorKind::WouldBlock.into()))
}

/// A pipe: the host's end, overlapped, and the server's, which is as any program expects it. Within the runtime.
///
/// Nobody else can have made a pipe of this name or get between the two ends: the name cannot be guessed, is used once, for
/// one client, and not from another machine.
pub(super) async fn open(way: Way) -> io::Result<(End, OwnedHandle)> {
    let name = name();
    let end = ServerOptions::new()
        .access_outbound(way == Way::ToServer)
        .first_pipe_instance(true)
        .max_instances(1)
        .reject_remote_clients(true)
        .create(&name)?;
    let its = OpenOptions::new().read(way == Way::ToServer).write(way == Way::FromServer).open(&name)?;
    // They are connected; the runtime begins to read when it is told so.
    end.connect().await?;
    Ok((end, its.into()))
}

/// 128 bits that only this process knows: the keys of the hasher are from the system's source of randomness.
fn name() -> String {
    let hasher = RandomState::new();
    format!(r"\\.\pipe\workflow-mcp-{:016x}{:016x}", hasher.hash_one(0), hasher.hash_one(1))
}
