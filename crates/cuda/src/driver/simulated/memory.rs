//! Device memory, which lies on the host under addresses of its own.

use super::shadow::{Name, Shadow};
use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes of a device, and their last accesses.
#[derive(Debug)]
pub(super) struct Allocation {
    pub(super) device: usize,
    pub(super) bytes: Box<[u8]>,
    pub(super) shadow: Shadow,
    pub(super) written: Written,
    /// Its free is on a stream.
    pub(super) freeing: bool,
}

/// Ranges that were written to.
#[derive(Debug, Default)]
pub(super) struct Written(BTreeMap<u64, u64>);

impl Written {
    pub(super) fn add(&mut self, range: Range<u64>) {
        let (mut start, mut end) = (range.start, range.end);
        while let Some((&from, &to)) = self.0.range(..=end).next_back().filter(|(_, to)| **to >= start) {
            (start, end) = (start.min(from), end.max(to));
            self.0.remove(&from);
        }
        self.0.insert(start, end);
    }

    pub(super) fn covers(&self, range: &Range<u64>) -> bool {
        range.is_empty() || self.0.range(..=range.start).next_back().is_some_and(|(_, end)| *end >= range.end)
    }
}

/// All device memory, by address. Addresses are not used again, so freed blocks are known for ever.
#[derive(Debug)]
pub(super) struct Addresses {
    next: u64,
    live: BTreeMap<u64, Allocation>,
    freed: BTreeMap<u64, (u64, Name)>,
}

/// Far from the host's memory: code that follows such an address there is found out.
const FIRST: u64 = 0x7_0000_0000_0000;
const ALIGNMENT: u64 = 512;
/// Freed blocks that messages can name.
const REMEMBERED: usize = 1024;

impl Addresses {
    pub(super) fn new() -> Self {
        Self { next: FIRST, live: BTreeMap::new(), freed: BTreeMap::new() }
    }

    pub(super) fn add(&mut self, device: usize, bytes: usize) -> u64 {
        let start = self.next;
        // A gap behind each block, so that an access over its end hits nothing.
        self.next += (bytes as u64 + 1).next_multiple_of(ALIGNMENT);
        let (shadow, written) = Default::default();
        let bytes = vec![0; bytes].into_boxed_slice();
        self.live.insert(start, Allocation { device, bytes, shadow, written, freeing: false });
        start
    }

    /// The allocation of these bytes, and its start; or their fault.
    pub(super) fn find(&mut self, range: &Range<u64>) -> Result<(u64, &mut Allocation), String> {
        let holds = |start: u64, bytes: u64| range.start >= start && range.end <= start + bytes;
        if let Some((&start, block)) = self.live.range(..=range.start).next_back()
            && holds(start, block.bytes.len() as u64)
        {
            return Ok((start, self.live.get_mut(&start).expect("just found")));
        }
        if let Some((&start, (bytes, name))) = self.freed.range(..=range.start).next_back()
            && holds(start, *bytes)
        {
            return Err(format!("uses memory after {name}"));
        }
        Err(format!("reaches bytes {:#x}..{:#x}, which are nobody's", range.start, range.end))
    }

    /// Takes an allocation away. Answers its device and size.
    pub(super) fn remove(&mut self, start: u64, name: &Name) -> Option<(usize, usize)> {
        let block = self.live.remove(&start)?;
        if self.freed.len() == REMEMBERED {
            self.freed.pop_first();
        }
        self.freed.insert(start, (block.bytes.len() as u64, name.clone()));
        Some((block.device, block.bytes.len()))
    }

    pub(super) fn live(&self) -> usize {
        self.live.len()
    }
}

#[cfg(test)]
mod tests {
    use super::Written;

    #[test]
    fn ranges_grow_together() {
        let mut written = Written::default();
        written.add(0..4);
        written.add(8..12);
        assert!(written.covers(&(1..4)) && !written.covers(&(0..9)));
        written.add(4..8);
        assert!(written.covers(&(0..12)) && !written.covers(&(11..13)));
    }
}
