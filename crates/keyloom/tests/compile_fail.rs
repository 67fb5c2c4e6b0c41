//! Queries that no index could answer, and templates that mean nothing, do not compile; what the
//! compiler says about them is part of the interface.
//!
//! `TRYBUILD=overwrite cargo test --test compile_fail` writes the messages anew, for a person to
//! read in the diff.

#[test]
fn mistakes_do_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
