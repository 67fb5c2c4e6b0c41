//! `#[derive(Record)]` for Keyloom.
