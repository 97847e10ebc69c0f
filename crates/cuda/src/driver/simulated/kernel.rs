//! Kernels of the simulated driver: closures on raw parameters.

use super::clock::Clock;
use super::shadow::Name;
use super::state::{Address, State};
use super::time::Nanoseconds;
use std::fmt;
use std::sync::Arc;

/// The function of a kernel.
pub(super) type Body = dyn Fn(&mut KernelCall<'_>) + Send + Sync;

/// A kernel, found by its name in every module.
pub struct Kernel {
    pub(super) name: Arc<str>,
    /// Bytes of each parameter.
    pub(super) parameters: Vec<usize>,
    pub(super) duration: Nanoseconds,
    pub(super) share: f64,
    pub(super) body: Box<Body>,
}

impl Kernel {
    /// A kernel with parameters of these sizes.
    pub fn new(name: &str, parameters: &[usize], body: impl Fn(&mut KernelCall<'_>) + Send + Sync + 'static) -> Self {
        let parameters = parameters.to_vec();
        Self { name: name.into(), parameters, duration: 0, share: 1.0, body: Box::new(body) }
    }

    /// Its time, and its share of the device.
    #[must_use]
    pub fn takes(mut self, duration: Nanoseconds, share: f64) -> Self {
        (self.duration, self.share) = (duration, share);
        self
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A kernel while it runs: its reads and writes are checked.
pub struct KernelCall<'a> {
    state: &'a mut State,
    name: &'a Name,
    clock: &'a Clock,
    parameters: &'a [Box<[u8]>],
    /// Blocks in x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y and z.
    pub block: [u32; 3],
    after: Nanoseconds,
}

impl<'a> KernelCall<'a> {
    pub(super) fn new(
        state: &'a mut State,
        name: &'a Name,
        clock: &'a Clock,
        parameters: &'a [Box<[u8]>],
        grid: [u32; 3],
        block: [u32; 3],
    ) -> Self {
        Self { state, name, clock, parameters, grid, block, after: 0 }
    }

    pub(super) fn after(&self) -> Nanoseconds {
        self.after
    }

    /// A parameter of up to eight bytes, as an integer.
    #[must_use]
    pub fn parameter(&self, at: usize) -> u64 {
        let mut word = [0; 8];
        let bytes = &self.parameters[at];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    }

    /// A parameter of up to eight bytes that counts something.
    #[must_use]
    pub fn count(&self, at: usize) -> usize {
        self.parameter(at) as usize
    }

    /// Reads bytes of device memory.
    pub fn read(&mut self, address: u64, bytes: usize) -> Vec<u8> {
        self.state.load(Address::Device(address), bytes, self.name, self.clock, &mut self.after)
    }

    /// Writes bytes of device memory.
    pub fn write(&mut self, address: u64, bytes: &[u8]) {
        let after = self.state.store(Address::Device(address), bytes, self.name, self.clock);
        self.after = self.after.max(after);
    }

    /// Reads 64-bit integers.
    pub fn read_words(&mut self, address: u64, count: usize) -> Vec<u64> {
        let bytes = self.read(address, count * 8);
        let (words, _) = bytes.as_chunks::<8>();
        words.iter().map(|word| u64::from_le_bytes(*word)).collect()
    }

    /// Writes 64-bit integers.
    pub fn write_words(&mut self, address: u64, words: &[u64]) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.write(address, &bytes);
    }
}
