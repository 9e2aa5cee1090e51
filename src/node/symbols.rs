//! What the program that loaded us exports beyond the Node-API that every host has. Looked up by name at run time: what
//! is missing is done without.

#![cfg_attr(
    not(feature = "slow-paths"),
    expect(unsafe_code, reason = "looking up symbols is a matter of pointers")
)]

use std::ffi::{CStr, c_void};
use std::ptr::NonNull;

/// Where a function of this name is, if there is one.
#[cfg(all(unix, not(feature = "slow-paths")))]
pub fn find(name: &CStr) -> Option<NonNull<c_void>> {
    // SAFETY: a name that ends in NUL, looked up in what the process has loaded already.
    NonNull::new(unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) })
}

/// Where a function of this name is, if there is one.
#[cfg(all(windows, not(feature = "slow-paths")))]
pub fn find(name: &CStr) -> Option<NonNull<c_void>> {
    use windows_sys::Win32::System::LibraryLoader::{GetModuleHandleW, GetProcAddress};
    // SAFETY: the module of the program itself (node.exe, electron.exe), which is never unloaded, and a name that ends in NUL.
    let found = unsafe { GetProcAddress(GetModuleHandleW(std::ptr::null()), name.as_ptr().cast()) };
    found.and_then(|function| NonNull::new(function as *mut c_void))
}

/// Nothing, so that the tests reach what is done without.
#[cfg(feature = "slow-paths")]
pub fn find(_name: &CStr) -> Option<NonNull<c_void>> {
    None
}
