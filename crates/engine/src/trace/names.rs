//! Texts, numbered.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

/// Texts in the order of their first sight; number 0 is the empty one.
pub(super) struct Names {
    numbers: HashMap<Arc<str>, u32>,
    texts: Vec<Arc<str>>,
}

impl Names {
    pub(super) fn new() -> Self {
        let empty: Arc<str> = "".into();
        Self { numbers: HashMap::from([(Arc::clone(&empty), 0)]), texts: vec![empty] }
    }

    /// The number of a text.
    pub(super) fn number(&mut self, text: &str) -> u32 {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        let (text, number) = (Arc::<str>::from(text), u32::try_from(self.texts.len()).unwrap_or(0));
        self.texts.push(Arc::clone(&text));
        self.numbers.insert(text, number);
        number
    }

    pub(super) fn all(&self) -> Vec<String> {
        self.texts.iter().map(ToString::to_string).collect()
    }
}

/// A hasher for short texts and for numbers: a look into a map that one thread fills with its own names is not to take
/// longer than it saves.
#[derive(Default)]
pub(super) struct Quick(u64);

pub(super) type QuickMap<K, V> = HashMap<K, V, BuildHasherDefault<Quick>>;

impl Hasher for Quick {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    #[inline]
    fn write_u8(&mut self, number: u8) {
        self.write_u64(u64::from(number)); // the end of a text
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x51_7c_c1_b7_27_22_0a_95);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0.rotate_left(26)
    }
}
