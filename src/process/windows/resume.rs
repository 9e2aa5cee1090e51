//! A process that was created suspended runs.
//!
//! The standard library keeps the handle of the first thread to itself. So the thread is looked up among all of the system:
//! some milliseconds, off the I/O thread. `NtResumeProcess` would be shorter, and is documented nowhere.
#![expect(unsafe_code, reason = "the system's calls on threads")]

use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::process::Child;

use windows_sys::Win32::Foundation::INVALID_HANDLE_VALUE;
use windows_sys::Win32::System::Diagnostics::ToolHelp::{
    CreateToolhelp32Snapshot, TH32CS_SNAPTHREAD, THREADENTRY32, Thread32First, Thread32Next,
};
use windows_sys::Win32::System::Threading::{OpenThread, ResumeThread, THREAD_SUSPEND_RESUME};

/// Resumes the first thread of a child. The child is borrowed: while its handle is open, its number is nobody else's.
pub(super) fn resume(child: &Child) -> io::Result<()> {
    let mut resumed = false;
    for_each_thread(|thread| {
        if thread.th32OwnerProcessID == child.id() {
            resume_thread(thread.th32ThreadID)?;
            resumed = true;
        }
        Ok(())
    })?;
    if resumed { Ok(()) } else { Err(io::Error::other("its first thread was not found")) }
}

fn for_each_thread(mut visit: impl FnMut(&THREADENTRY32) -> io::Result<()>) -> io::Result<()> {
    // SAFETY: takes no pointer. The number means nothing for threads.
    let snapshot = unsafe { CreateToolhelp32Snapshot(TH32CS_SNAPTHREAD, 0) };
    if snapshot == INVALID_HANDLE_VALUE {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the handle was just made, is valid, and nobody else closes it.
    let snapshot = unsafe { OwnedHandle::from_raw_handle(snapshot) };
    let mut thread = THREADENTRY32 { dwSize: SIZE, ..THREADENTRY32::default() };
    // SAFETY: the handle is open, and the entry says its own size.
    let mut found = unsafe { Thread32First(snapshot.as_raw_handle(), &raw mut thread) };
    while found != 0 {
        visit(&thread)?;
        // The system sets it to what it has written, which may be less.
        thread.dwSize = SIZE;
        // SAFETY: as above.
        found = unsafe { Thread32Next(snapshot.as_raw_handle(), &raw mut thread) };
    }
    Ok(())
}

#[expect(clippy::cast_possible_truncation, reason = "28 bytes")]
const SIZE: u32 = size_of::<THREADENTRY32>() as u32;

fn resume_thread(id: u32) -> io::Result<()> {
    // SAFETY: takes no pointer.
    let thread = unsafe { OpenThread(THREAD_SUSPEND_RESUME, 0, id) };
    if thread.is_null() {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the handle was just made, is valid, and nobody else closes it.
    let thread = unsafe { OwnedHandle::from_raw_handle(thread) };
    // SAFETY: the handle is open, with the right that this call wants.
    let suspensions_before = unsafe { ResumeThread(thread.as_raw_handle()) };
    if suspensions_before == u32::MAX { Err(io::Error::last_os_error()) } else { Ok(()) }
}
