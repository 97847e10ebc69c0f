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

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::ffi::c_int;

    #[test]
    fn it_is_about_the_calling_thread_alone() {
        const PR_GET_TIMERSLACK: c_int = 30;
        unsafe extern "C" {
            fn prctl(option: c_int, ...) -> c_int;
        }
        // SAFETY: the C library's function; this option takes no argument.
        let slack = || unsafe { prctl(PR_GET_TIMERSLACK) };
        let before = slack();
        let lowered = std::thread::spawn(move || {
            super::lower();
            slack()
        });
        assert_eq!(lowered.join().unwrap(), 1_000);
        assert_eq!(slack(), before);
        assert_ne!(before, 1_000);
    }
}
