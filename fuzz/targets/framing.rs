//! The input as what a server writes: `tests/wire/framing.rs`.

#![no_main]

#[path = "../../tests/wire/framing.rs"]
mod framing;
#[expect(dead_code, reason = "for its second reader")]
#[path = "../../tests/wire/script/mod.rs"]
mod script;

libfuzzer_sys::fuzz_target!(|input: &[u8]| framing::check(input));
