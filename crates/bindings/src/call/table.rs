//! Tables with number keys that are mixed well enough for their places.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

pub(super) type Table<T> = HashMap<u64, T, BuildHasherDefault<Spread>>;

/// Spreads the bits of one number over the others.
#[derive(Default)]
pub(super) struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, number: u64) {
        let product = u128::from(self.0 ^ number) * 0x9E37_79B9_7F4A_7C15;
        #[allow(clippy::cast_possible_truncation)] // both halves count
        let halves = (product as u64, (product >> 64) as u64);
        self.0 = halves.0 ^ halves.1;
    }
}
