//! Virtual time: the duration of work, and its share of a device meanwhile.

/// Nanoseconds since the driver was made.
pub type Nanoseconds = u64;

/// How fast the simulated devices are.
#[derive(Debug, Clone, Copy)]
pub struct Speeds {
    /// Bytes per microsecond from and to the host, and between devices.
    pub link: u64,
    /// Bytes per microsecond within a device.
    pub memory: u64,
}

impl Default for Speeds {
    fn default() -> Self {
        Self { link: 25_000, memory: 1_000_000 }
    }
}

/// Work that lies farther back is forgotten.
const REMEMBERED: usize = 4096;

/// A part of a device that work shares: its multiprocessors, or a copy engine.
#[derive(Debug, Default)]
pub(super) struct Resource(Vec<Busy>);

#[derive(Debug)]
struct Busy {
    start: Nanoseconds,
    end: Nanoseconds,
    share: f64,
}

impl Resource {
    /// Takes a share for so long, not before `ready`, in the first gap that has room. Answers when it starts.
    pub(super) fn take(&mut self, ready: Nanoseconds, duration: Nanoseconds, share: f64) -> Nanoseconds {
        if duration == 0 {
            return ready;
        }
        let mut starts: Vec<_> = self.0.iter().map(|busy| busy.end).filter(|end| *end > ready).collect();
        starts.push(ready);
        starts.sort_unstable();
        let start = starts.into_iter().find(|start| self.has_room(*start, start + duration, share));
        let start = start.expect("behind everything there is room");
        if self.0.len() == REMEMBERED {
            self.0.remove(0);
        }
        self.0.push(Busy { start, end: start + duration, share });
        start
    }

    fn has_room(&self, start: Nanoseconds, end: Nanoseconds, share: f64) -> bool {
        let used_at = |time: Nanoseconds| -> f64 {
            self.0.iter().filter(|busy| busy.start <= time && time < busy.end).map(|busy| busy.share).sum()
        };
        let inside = self.0.iter().map(|busy| busy.start).filter(|time| (start..end).contains(time));
        inside.chain([start]).all(|time| used_at(time) + share <= 1.0 + 1e-9)
    }
}

#[cfg(test)]
mod tests {
    use super::Resource;

    #[test]
    fn shares_run_together_and_wholes_after_each_other() {
        let mut resource = Resource::default();
        assert_eq!([0.25; 4].map(|share| resource.take(0, 10, share)), [0; 4]);
        assert_eq!(resource.take(0, 10, 0.25), 10);
        assert_eq!(resource.take(0, 5, 1.0), 20);
        assert_eq!(resource.take(100, 5, 1.0), 100);
        assert_eq!(resource.take(0, 75, 1.0), 25, "a gap is used");
    }
}
