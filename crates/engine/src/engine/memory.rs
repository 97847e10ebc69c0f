//! How many bytes of memory this process may use: the machine's, or fewer where a control group has a limit.

/// The bytes that there are; nothing where the system does not say.
pub(super) fn available() -> Option<u64> {
    let least = [total(), granted()].into_iter().flatten().min();
    least.filter(|&bytes| bytes > 0)
}

/// The memory of the machine.
#[cfg(target_os = "linux")]
fn total() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The memory of the machine.
#[cfg(target_vendor = "apple")]
fn total() -> Option<u64> {
    use std::ffi::{c_char, c_int, c_void};
    unsafe extern "C" {
        fn sysctlbyname(
            name: *const c_char,
            old: *mut c_void,
            old_length: *mut usize,
            new: *const c_void,
            new_length: usize,
        ) -> c_int;
    }
    let (mut bytes, mut length) = (0_u64, size_of::<u64>());
    // SAFETY: the name ends in a zero, `length` says how much room there is, and nothing is set.
    let code =
        unsafe { sysctlbyname(c"hw.memsize".as_ptr(), (&raw mut bytes).cast(), &raw mut length, std::ptr::null(), 0) };
    (code == 0 && length == size_of::<u64>()).then_some(bytes)
}

/// The memory of the machine.
#[cfg(windows)]
fn total() -> Option<u64> {
    /// `MEMORYSTATUSEX`.
    #[repr(C)]
    struct Status {
        length: u32,
        load: u32,
        total_physical: u64,
        others: [u64; 6],
    }
    #[link(name = "kernel32")]
    unsafe extern "system" {
        fn GlobalMemoryStatusEx(status: *mut Status) -> i32;
    }
    let length = u32::try_from(size_of::<Status>()).ok()?;
    let mut status = Status { length, load: 0, total_physical: 0, others: [0; 6] };
    // SAFETY: the structure is the system's, and says its own length.
    (unsafe { GlobalMemoryStatusEx(&raw mut status) } != 0).then_some(status.total_physical)
}

/// The memory of the machine.
#[cfg(not(any(target_os = "linux", target_vendor = "apple", windows)))]
fn total() -> Option<u64> {
    None
}

/// The limit of this process' control group.
fn granted() -> Option<u64> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok()?.trim().parse().ok()
}

#[cfg(all(test, not(loom), any(target_os = "linux", target_vendor = "apple", windows)))]
mod tests {
    /// Miri has no files of the system's.
    #[test]
    #[cfg_attr(miri, ignore)]
    fn the_system_says_how_much_memory_there_is() {
        let bytes = super::available().expect("this system says it");
        assert!((16 << 20..1 << 50).contains(&bytes), "{bytes}");
    }
}
