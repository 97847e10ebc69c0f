//! Memory that holds code: written first, then executable and no longer writable.

use std::ptr::NonNull;

/// Code in pages of its own. They go back to the system with it.
#[derive(Debug)]
pub(super) struct Executable {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: no thread writes to the pages once they are made.
unsafe impl Send for Executable {}
// SAFETY: as above.
unsafe impl Sync for Executable {}

impl Executable {
    /// Whether this platform may have such memory. A system's rules may still refuse it.
    pub(super) const MAY_BE: bool = cfg!(all(target_os = "linux", not(miri)));

    /// Pages with this code. None if the system does not allow it.
    pub(super) fn new(code: &[u8]) -> Option<Self> {
        if code.is_empty() {
            return None;
        }
        let bytes = code.len();
        let made = Self { start: system::reserve(bytes)?, bytes };
        // SAFETY: the pages are new, writable, and at least as long as the code.
        unsafe { made.start.as_ptr().copy_from_nonoverlapping(code.as_ptr(), bytes) };
        system::make_executable(made.start, bytes).then_some(made)
    }

    /// The first byte of the code.
    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }
}

impl Drop for Executable {
    fn drop(&mut self) {
        system::release(self.start, self.bytes);
    }
}

#[cfg(target_os = "linux")]
mod system {
    use std::ptr::{NonNull, null_mut};

    const READ: i32 = 1;
    const WRITE: i32 = 2;
    const EXECUTE: i32 = 4;
    const PRIVATE: i32 = 2;
    const ANONYMOUS: i32 = 32;

    unsafe extern "C" {
        fn mmap(address: *mut u8, length: usize, protection: i32, flags: i32, file: i32, offset: isize) -> *mut u8;
        fn mprotect(address: *mut u8, length: usize, protection: i32) -> i32;
        fn munmap(address: *mut u8, length: usize) -> i32;
    }

    pub(super) fn reserve(bytes: usize) -> Option<NonNull<u8>> {
        // SAFETY: new pages, wherever the system likes.
        let start = unsafe { mmap(null_mut(), bytes, READ | WRITE, PRIVATE | ANONYMOUS, -1, 0) };
        if start.addr() == usize::MAX { None } else { NonNull::new(start) }
    }

    pub(super) fn make_executable(start: NonNull<u8>, bytes: usize) -> bool {
        // SAFETY: whole pages of the caller's own.
        unsafe { mprotect(start.as_ptr(), bytes, READ | EXECUTE) == 0 }
    }

    pub(super) fn release(start: NonNull<u8>, bytes: usize) {
        // SAFETY: whole pages of the caller's own, which nobody uses any more.
        unsafe { munmap(start.as_ptr(), bytes) };
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::ptr::NonNull;

    pub(super) fn reserve(_bytes: usize) -> Option<NonNull<u8>> {
        None
    }

    pub(super) fn make_executable(_start: NonNull<u8>, _bytes: usize) -> bool {
        false
    }

    pub(super) fn release(_start: NonNull<u8>, _bytes: usize) {}
}
