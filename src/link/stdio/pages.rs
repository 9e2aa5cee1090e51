//! Pages of this process, asked for before somebody touches them.

/// Has the system give pages to `length` bytes at an address; false where it does not do that.
#[cfg(target_os = "linux")]
#[must_use]
#[expect(unsafe_code, reason = "rustix asks for the promise that nobody's memory changes")]
pub(super) fn populate(address: usize, length: usize) -> bool {
    use std::ptr::with_exposed_provenance_mut;

    use rustix::mm::{Advice, madvise};
    use rustix::param::page_size;

    let start = address & !(page_size() - 1);
    // SAFETY: this changes no byte, whatever is there: pages that are missing come as they would at the first write, and
    // where no memory is, it fails.
    unsafe {
        madvise(
            with_exposed_provenance_mut(start),
            address + length - start,
            // Since Linux 5.14.
            Advice::LinuxPopulateWrite,
        )
        .is_ok()
    }
}

/// The same, where it cannot be asked for.
#[cfg(not(target_os = "linux"))]
#[must_use]
pub(super) fn populate(_address: usize, _length: usize) -> bool {
    false
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::fs;

    use super::*;

    /// Pages that this thread has had to wait for.
    fn faults() -> usize {
        let stat = fs::read_to_string("/proc/thread-self/stat").unwrap();
        let (_, fields) = stat.rsplit_once(") ").unwrap();
        fields.split(' ').nth(7).unwrap().parse().unwrap()
    }

    #[test]
    fn memory_that_was_asked_for_is_there_and_has_changed_in_nothing() {
        const SIZE: usize = 16 * 1024 * 1024;
        let mut buffer = Vec::<u8>::with_capacity(SIZE);
        buffer.resize(SIZE / 2, b'x');
        // Before Linux 5.14 it is not there, and does nothing.
        let is_there = populate(buffer.as_ptr().expose_provenance(), SIZE);
        let before = faults();
        buffer.resize(SIZE, b'y');
        let waited = faults() - before;
        assert!(!is_there || waited < 100, "{waited} pages were not there");
        let (first, second) = buffer.split_at(SIZE / 2);
        assert!(first.iter().all(|byte| *byte == b'x') && second.iter().all(|byte| *byte == b'y'));
    }

    #[test]
    fn where_no_memory_is_none_comes() {
        assert!(!populate(0, 4096));
    }
}
