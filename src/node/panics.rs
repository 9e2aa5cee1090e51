//! Panics on purpose, in a build for tests alone (cargo feature `panics`): a bug of ours must cost one call, and no host.

use napi_derive::napi;

use super::io_thread;

/// Panics where `place` says: in the `call` itself, in a `task` of the I/O thread, or on its `pool`.
///
/// # Panics
///
/// That is what it is for.
#[napi(catch_unwind)]
pub fn panic_in(place: String) {
    let Ok(runtime) = io_thread::handle() else { return };
    match place.as_str() {
        "task" => drop(runtime.spawn(async { panic!("a task panics for a test") })),
        "pool" => drop(runtime.spawn_blocking(|| panic!("the pool panics for a test"))),
        _ => panic!("a call panics for a test"),
    }
}
