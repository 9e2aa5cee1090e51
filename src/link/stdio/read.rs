//! Reading from a pipe on the I/O thread.

use std::io::ErrorKind;

use tokio::net::unix::pipe::Receiver;

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
pub fn read_now(pipe: &Receiver, buffer: &mut Vec<u8>) -> Read {
    loop {
        match pipe.try_read_buf(buffer) {
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

/// Waits until something can be read and appends it. Cancel-safe.
pub async fn read_some(pipe: &Receiver, buffer: &mut Vec<u8>) -> Read {
    loop {
        if pipe.readable().await.is_err() {
            return Read::End;
        }
        match read_now(pipe, buffer) {
            Read::Nothing => {}
            read => return read,
        }
    }
}
