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

/// Whether a process runs. One that has ended and that nobody has asked for yet does not.
#[cfg(target_os = "linux")]
fn is_alive(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    // The name, in parentheses, may hold anything.
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
    !matches!(state, Some('Z' | 'X'))
}

/// Elsewhere only the time limit tells.
#[cfg(not(target_os = "linux"))]
fn is_alive(_: u32) -> bool {
    true
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn finds_who_has_ended() {
        let mut child = std::process::Command::new("true").spawn().expect("there is a program of this name");
        let pid = child.id();
        child.wait().expect("it ends");
        assert_eq!(Peers(vec![Some(std::process::id()), None]).find_dead(), None);
        assert_eq!(Peers(vec![Some(std::process::id()), Some(pid)]).find_dead(), Some((1, pid)));
    }
}
