//! Which of the other ranks are alive, as far as this machine can tell.

/// The processes of the ranks that run on this machine: none where a rank runs elsewhere.
pub(crate) struct Peers(pub(crate) Vec<Option<u32>>);

impl Peers {
    /// The first rank that has ended.
    pub(crate) fn find_dead(&self) -> Option<(usize, u32)> {
        let here = self.0.iter().enumerate().filter_map(|(rank, pid)| Some((rank, (*pid)?)));
        here.into_iter().find(|(_, pid)| !is_alive(*pid))
    }
}

/// Whether a process runs. One that has ended and is not yet reaped does not.
#[cfg(target_os = "linux")]
fn is_alive(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    // The name, in parentheses, may hold anything.
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
    !matches!(state, Some('Z' | 'X'))
}

/// Whether a process runs, or has ended and is not yet reaped.
#[cfg(all(unix, not(target_os = "linux")))]
fn is_alive(pid: u32) -> bool {
    use std::ffi::c_int;
    unsafe extern "C" {
        fn kill(pid: c_int, signal: c_int) -> c_int;
    }
    const ESRCH: i32 = 3;
    let Ok(pid) = c_int::try_from(pid) else { return false };
    // SAFETY: the C library's function; signal 0 reaches no process.
    (unsafe { kill(pid, 0) }) == 0 || std::io::Error::last_os_error().raw_os_error() != Some(ESRCH)
}

/// Whether a process runs.
#[cfg(windows)]
fn is_alive(pid: u32) -> bool {
    use std::ffi::c_void;
    use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
    const SYNCHRONIZE: u32 = 0x0010_0000;
    const INVALID_PARAMETER: i32 = 87; // Windows' word for a process that is not there
    const WAIT_OBJECT_0: u32 = 0;
    #[link(name = "kernel32")]
    unsafe extern "system" {
        fn OpenProcess(access: u32, inherit: i32, pid: u32) -> *mut c_void;
        fn WaitForSingleObject(handle: *mut c_void, milliseconds: u32) -> u32;
    }
    // SAFETY: the system's function takes any number.
    let handle = unsafe { OpenProcess(SYNCHRONIZE, 0, pid) };
    if handle.is_null() {
        return std::io::Error::last_os_error().raw_os_error() != Some(INVALID_PARAMETER);
    }
    // SAFETY: the handle was opened just now, for us.
    let process = unsafe { OwnedHandle::from_raw_handle(handle) };
    // SAFETY: it is open, for this purpose; nothing is waited for.
    (unsafe { WaitForSingleObject(process.as_raw_handle(), 0) }) != WAIT_OBJECT_0
}

#[cfg(all(test, any(unix, windows)))]
mod tests {
    use super::*;

    #[test]
    fn finds_who_has_ended() {
        // Any program that ends by itself: this one, asked for the tests that it has.
        let program = std::env::current_exe().expect("it has a path");
        let mut child = std::process::Command::new(program)
            .arg("--list")
            .stdout(std::process::Stdio::null())
            .spawn()
            .expect("it runs twice");
        let pid = child.id();
        child.wait().expect("it ends");
        assert_eq!(Peers(vec![Some(std::process::id()), None]).find_dead(), None);
        assert_eq!(Peers(vec![Some(std::process::id()), Some(pid)]).find_dead(), Some((1, pid)));
    }
}
