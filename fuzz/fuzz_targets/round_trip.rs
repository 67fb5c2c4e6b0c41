#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| keyloom::fuzzing::round_trip(data));
