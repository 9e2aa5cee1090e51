//! Reading from a pipe that does not block.

use std::io::{self, ErrorKind};

use tokio::io::AsyncReadExt;

use crate::process::pipes::{self, Output};

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

/// Appends what is there now to the spare room of `buffer`, also where the runtime does not know of it yet.
pub async fn read_now(pipe: &Output, buffer: &mut Vec<u8>) -> Read {
    loop {
        if let Some(read) = outcome(pipes::output_now(pipe, buffer).await) {
            return read;
        }
    }
}

/// Waits until something can be read and appends it. Cancel-safe.
pub async fn read_some(pipe: &mut Output, buffer: &mut Vec<u8>) -> Read {
    loop {
        // Through the runtime, which has to learn that nothing is left. Of a read that did not fill the buffer it knows
        // that without another.
        if let Some(read) = outcome(pipe.read_buf(buffer).await) {
            return read;
        }
    }
}

/// `None` if it was interrupted and is to be repeated.
pub(super) fn outcome(read: io::Result<usize>) -> Option<Read> {
    match read {
        Ok(0) => Some(Read::End),
        Ok(_) => Some(Read::Some),
        Err(error) => match error.kind() {
            ErrorKind::Interrupted => None,
            ErrorKind::WouldBlock => Some(Read::Nothing),
            _ => Some(Read::End),
        },
    }
}

#[cfg(all(test, unix))]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::io::Write;
    use std::os::fd::OwnedFd;

    use super::*;

    #[tokio::test]
    async fn what_came_before_the_runtime_polled_can_be_read_at_once() {
        let (reader, mut writer) = io::pipe().unwrap();
        writer.write_all(b"last words\n").unwrap();
        let pipe = pipes::output(OwnedFd::from(reader)).unwrap();
        let mut buffer = Vec::with_capacity(64);
        assert_eq!(read_now(&pipe, &mut buffer).await, Read::Some);
        assert_eq!(buffer, b"last words\n");
        assert_eq!(read_now(&pipe, &mut buffer).await, Read::Nothing);
        drop(writer);
        assert_eq!(read_now(&pipe, &mut buffer).await, Read::End);
    }
}
