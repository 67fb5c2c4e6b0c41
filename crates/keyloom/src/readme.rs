//! The README, so that its program runs as a doc-test.
#![doc = include_str!("../../../README.md")]
