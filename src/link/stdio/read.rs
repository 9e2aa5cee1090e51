//! Reading from a non-blocking pipe on the I/O thread.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use tokio::io::unix::AsyncFd;

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
pub fn read_now(fd: &OwnedFd, buffer: &mut Vec<u8>) -> Read {
    loop {
        match rustix::io::read(fd, rustix::buffer::spare_capacity(buffer)) {
            Ok(0) => return Read::End,
            Ok(_) => return Read::Some,
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Read::Nothing,
            Err(_) => return Read::End,
        }
    }
}

/// Waits until something can be read and appends it. Cancel-safe.
pub async fn read_some(fd: &AsyncFd<OwnedFd>, buffer: &mut Vec<u8>) -> Read {
    loop {
        let Ok(mut ready) = fd.readable().await else { return Read::End };
        match read_now(fd.get_ref(), buffer) {
            Read::Nothing => ready.clear_ready(),
            read => return read,
        }
    }
}
