//! Reading from a pipe on the I/O thread.

use std::io::{self, ErrorKind};

use rustix::buffer::spare_capacity;
use tokio::net::unix::pipe::Receiver;

/// What is still read after the server has left: no pipe holds more, and a grandchild that writes on must not hold up its end.
pub const LAST_READ_MAX: u64 = 1024 * 1024;

/// What one read gave.
#[derive(Debug, PartialEq, Eq)]
pub enum Read {
    /// Bytes were appended.
    Some,
    /// Nothing is there now.
    Nothing,
    /// The other side has closed, or reading failed for good.
    End,
}

/// Appends what is there now to the spare room of `buffer`, without waiting.
///
/// The pipe itself is asked: the runtime only knows of what has come once it has polled, and a server that writes and leaves at
/// once is known to have left before that.
pub fn read_now(pipe: &Receiver, buffer: &mut Vec<u8>) -> Read {
    outcome(|| Ok(rustix::io::read(pipe, spare_capacity(buffer))?))
}

/// Waits until something can be read and appends it. Cancel-safe.
pub async fn read_some(pipe: &Receiver, buffer: &mut Vec<u8>) -> Read {
    loop {
        if pipe.readable().await.is_err() {
            return Read::End;
        }
        // Through the runtime, which has to learn that nothing is left.
        match outcome(|| pipe.try_read_buf(buffer)) {
            Read::Nothing => {}
            read => return read,
        }
    }
}

fn outcome(mut read: impl FnMut() -> io::Result<usize>) -> Read {
    loop {
        match read() {
            Ok(0) => return Read::End,
            Ok(_) => return Read::Some,
            Err(error) => match error.kind() {
                ErrorKind::Interrupted => {}
                ErrorKind::WouldBlock => return Read::Nothing,
                _ => return Read::End,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::io::Write;
    use std::os::fd::OwnedFd;

    use super::*;

    #[tokio::test]
    async fn what_came_before_the_runtime_polled_can_be_read_at_once() {
        let (reader, mut writer) = io::pipe().unwrap();
        writer.write_all(b"last words\n").unwrap();
        let pipe = Receiver::from_owned_fd(OwnedFd::from(reader)).unwrap();
        let mut buffer = Vec::with_capacity(64);
        assert_eq!(read_now(&pipe, &mut buffer), Read::Some);
        assert_eq!(buffer, b"last words\n");
        assert_eq!(read_now(&pipe, &mut buffer), Read::Nothing);
        drop(writer);
        assert_eq!(read_now(&pipe, &mut buffer), Read::End);
    }
}
