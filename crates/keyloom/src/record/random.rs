//! Random bytes from the operating system. They are fetched in blocks, because a call costs more
//! than the bytes.

use std::cell::RefCell;

const BLOCK_BYTES: usize = 1024;

struct Block {
    bytes: [u8; BLOCK_BYTES],
    used: usize,
}

thread_local! {
    static BLOCK: RefCell<Block> =
        const { RefCell::new(Block { bytes: [0; BLOCK_BYTES], used: BLOCK_BYTES }) };
}

/// `N` random bytes; `N` is at most 1,024. No byte is ever given twice.
pub(crate) fn random_bytes<const N: usize>() -> [u8; N] {
    BLOCK.with_borrow_mut(|block| {
        if block.used + N > BLOCK_BYTES {
            refill(&mut block.bytes);
            block.used = 0;
        }
        let mut taken = [0; N];
        taken.copy_from_slice(&block.bytes[block.used..block.used + N]);
        block.used += N;
        taken
    })
}

/// A number from 0 (inclusive) to 1 (exclusive), for jitter.
pub(crate) fn random_fraction() -> f64 {
    f64::from(u32::from_le_bytes(random_bytes())) / (f64::from(u32::MAX) + 1.0)
}

#[allow(clippy::expect_used, reason = "without randomness every version and id could repeat")]
fn refill(bytes: &mut [u8]) {
    // The operating system refuses random bytes only while it is booting, or if it lacks the call
    // altogether. There is no safe way to continue then.
    getrandom::fill(bytes).expect("the operating system gives random bytes");
}
