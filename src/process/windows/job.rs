//! Everybody the ladder reaches: a job object. Descendants are born into it, and none may leave it.
//!
//! What a server has started by others (a service, the task scheduler, WMI) is not its descendant and not in its job.
#![expect(unsafe_code, reason = "jobs are the system's calls")]

use std::io;
use std::os::windows::io::{AsRawHandle, BorrowedHandle, FromRawHandle, OwnedHandle};
use std::ptr::{from_mut, from_ref, null, null_mut};

use windows_sys::Win32::Foundation::{ERROR_INVALID_PARAMETER, HANDLE};
use windows_sys::Win32::System::JobObjects::{
    AssignProcessToJobObject, CreateJobObjectW, JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION, JobObjectBasicProcessIdList, JobObjectExtendedLimitInformation,
    QueryInformationJobObject, SetInformationJobObject, TerminateJobObject,
};
use windows_sys::Win32::System::Threading::{
    OpenProcess, PROCESS_NAME_WIN32, PROCESS_QUERY_LIMITED_INFORMATION, QueryFullProcessImageNameW,
};

/// A job that the system ends when this, its only handle, is closed: dropped, or left behind by a host that died.
#[derive(Debug)]
pub(super) struct Job(OwnedHandle);

/// Of more members only these are named.
const LONGEST_LIST: usize = 64;

/// That of the console's host is far shorter; a longer one is not its.
const LONGEST_PATH: u32 = 512;

/// The exit code of whom we end, as Node's `kill` sets it here.
const ENDED: u32 = 1;

/// `JOBOBJECT_BASIC_PROCESS_ID_LIST` with room for more than one.
#[repr(C)]
struct ProcessIds {
    assigned: u32,
    listed: u32,
    ids: [usize; LONGEST_LIST],
}

impl Job {
    pub(super) fn new() -> io::Result<Self> {
        // SAFETY: null is allowed for both: no name, and attributes by which no child inherits the handle.
        let handle = unsafe { CreateJobObjectW(null(), null()) };
        if handle.is_null() {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the handle was just made, is valid, and nobody else closes it.
        let job = Self(unsafe { OwnedHandle::from_raw_handle(handle) });
        let mut limits = JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default();
        limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
        // SAFETY: the class says that the pointer is to this structure, whose size is given; it is only read.
        let set = unsafe {
            SetInformationJobObject(
                job.raw(),
                JobObjectExtendedLimitInformation,
                from_ref(&limits).cast(),
                size_of_u32::<JOBOBJECT_EXTENDED_LIMIT_INFORMATION>(),
            )
        };
        succeeded(set).map(|()| job)
    }

    /// Puts a process in, and thereby all that it starts from now on.
    pub(super) fn take(&self, process: BorrowedHandle<'_>) -> io::Result<()> {
        // SAFETY: both handles are open for the time of the call.
        succeeded(unsafe { AssignProcessToJobObject(self.raw(), process.as_raw_handle()) })
    }

    /// Ends every member. That it failed shows in `members`.
    pub(super) fn end(&self) {
        // SAFETY: the handle is open for the time of the call.
        unsafe { TerminateJobObject(self.raw(), ENDED) };
    }

    /// The pids of those who are in it, but for the host of their console: it leaves a moment after the last who uses it, or else
    /// with the job. Who has ended is not in it, even while others hold handles to it.
    pub(super) fn members(&self) -> Vec<u32> {
        let mut list = ProcessIds { assigned: 0, listed: 0, ids: [0; LONGEST_LIST] };
        // A list that is too short for all is filled all the same, and the call fails with ERROR_MORE_DATA.
        // SAFETY: the class says that the pointer is to this structure, whose size is given; whatever is written there is valid.
        // Null: the length is not wanted.
        unsafe {
            QueryInformationJobObject(
                self.raw(),
                JobObjectBasicProcessIdList,
                from_mut(&mut list).cast(),
                size_of_u32::<ProcessIds>(),
                null_mut(),
            );
        }
        let listed = usize::try_from(list.listed).unwrap_or(LONGEST_LIST);
        let pids = list.ids.iter().take(listed).filter_map(|id| u32::try_from(*id).ok());
        pids.filter(|pid| counts(*pid)).collect()
    }

    fn raw(&self) -> HANDLE {
        self.0.as_raw_handle()
    }
}

/// Whether one of the list is still there, and no `conhost.exe`. A server that took this name to be overlooked would gain
/// nothing: the end of a job is everybody's.
fn counts(pid: u32) -> bool {
    // SAFETY: takes no pointer.
    let process = unsafe { OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, 0, pid) };
    if process.is_null() {
        let left = ERROR_INVALID_PARAMETER.cast_signed();
        return io::Error::last_os_error().raw_os_error() != Some(left);
    }
    // SAFETY: the handle was just made, is valid, and nobody else closes it.
    let process = unsafe { OwnedHandle::from_raw_handle(process) };
    let mut path = [0; LONGEST_PATH as usize];
    let mut length = LONGEST_PATH;
    // SAFETY: the handle is open with the right that this call wants; the length is that of the array.
    let named = unsafe {
        QueryFullProcessImageNameW(
            process.as_raw_handle(),
            PROCESS_NAME_WIN32,
            path.as_mut_ptr(),
            &raw mut length,
        )
    };
    // On success, what was written without the NUL; 0 would be no path.
    let path = String::from_utf16_lossy(&path[..if named == 0 { 0 } else { length as usize }]);
    path.rsplit('\\').next().is_none_or(|name| !name.eq_ignore_ascii_case("conhost.exe"))
}

fn succeeded(result: windows_sys::core::BOOL) -> io::Result<()> {
    if result == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[expect(clippy::cast_possible_truncation, reason = "these structures have some hundred bytes")]
const fn size_of_u32<T>() -> u32 {
    size_of::<T>() as u32
}
