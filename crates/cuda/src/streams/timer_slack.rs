//! How exactly the kernel wakes a thread that sleeps.

/// Lets the calling thread's short sleeps end when they should. Linux may prolong each by 50 us, to save power.
pub(crate) fn lower() {
    #[cfg(target_os = "linux")]
    {
        use std::ffi::{c_int, c_ulong};
        const PR_SET_TIMERSLACK: c_int = 29;
        const NANOSECONDS: c_ulong = 1_000;
        unsafe extern "C" {
            fn prctl(option: c_int, ...) -> c_int;
        }
        // SAFETY: the C library's function, with the argument that this option takes. It is about this thread alone.
        unsafe { prctl(PR_SET_TIMERSLACK, NANOSECONDS) };
    }
}
