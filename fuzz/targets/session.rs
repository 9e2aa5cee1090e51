//! A session played by the script that the input is: `tests/wire/script`.

#![no_main]

#[path = "../../tests/wire/script/mod.rs"]
mod script;

libfuzzer_sys::fuzz_target!(|input: &[u8]| script::play(input));
