//! Steps of random programs, and what they do when each ends before the next begins.

/// Words of an array: more than the blocks of one staged copy hold.
pub(crate) const WORDS: usize = 2600;
/// What the arrays hold that nobody writes to.
pub(crate) const SHARED: u32 = 3;
const ARRAYS: usize = 4;
const HOSTS: usize = 2;

#[derive(Debug, Clone, Copy)]
pub(crate) enum Step {
    Axpy {
        out: usize,
        x: usize,
        factor: u64,
    },
    Scale {
        out: usize,
        x: usize,
        factor: u64,
    },
    Fill {
        to: usize,
        value: u32,
    },
    Copy {
        to: usize,
        from: usize,
    },
    CopyIn {
        to: usize,
        from: usize,
    },
    CopyOut {
        to: usize,
        from: usize,
    },
    Add {
        to: usize,
        term: u64,
    },
    /// Drops an array and makes another in its place.
    Replace {
        array: usize,
        value: u32,
    },
    Wait {
        array: usize,
    },
}

/// The arrays of a thread: first one of each device that all threads share, then its own.
#[derive(Debug)]
pub(crate) struct Model {
    devices: usize,
    pub(crate) arrays: Vec<Vec<u64>>,
    pub(crate) hosts: Vec<Vec<u64>>,
}

fn filled(value: u32) -> Vec<u64> {
    vec![u64::from(value) << 32 | u64::from(value); WORDS]
}

fn device_of(devices: usize, array: usize) -> usize {
    array % devices
}

impl Model {
    pub(crate) fn new(devices: usize) -> Self {
        let arrays = (0..devices).map(|_| filled(SHARED)).chain((0..ARRAYS).map(|at| filled(initial(at)))).collect();
        let hosts = (0..HOSTS as u64).map(|host| (0..WORDS as u64).map(|word| word * (host + 1)).collect()).collect();
        Self { devices, arrays, hosts }
    }

    /// The thread's own arrays at the beginning: devices and values.
    pub(crate) fn places(&self) -> impl Iterator<Item = (usize, u32)> + use<> {
        let devices = self.devices;
        (0..ARRAYS).map(move |at| (device_of(devices, at), initial(at)))
    }

    pub(crate) fn hosts(&self) -> impl Iterator<Item = Vec<u64>> {
        self.hosts.iter().cloned()
    }

    pub(crate) fn run(&mut self, step: Step) {
        match step {
            Step::Axpy { out, x, factor } => {
                let x = self.arrays[x].clone();
                for (out, x) in self.arrays[out].iter_mut().zip(x) {
                    *out = x.wrapping_mul(factor).wrapping_add(*out);
                }
            }
            Step::Scale { out, x, factor } => {
                self.arrays[out] = self.arrays[x].iter().map(|x| x.wrapping_mul(factor)).collect();
            }
            Step::Fill { to, value } | Step::Replace { array: to, value } => self.arrays[to] = filled(value),
            Step::Copy { to, from } => self.arrays[to] = self.arrays[from].clone(),
            Step::CopyIn { to, from } => self.arrays[to] = self.hosts[from].clone(),
            Step::CopyOut { to, from } => self.hosts[to] = self.arrays[from].clone(),
            Step::Add { to, term } => self.hosts[to].iter_mut().for_each(|word| *word = word.wrapping_add(term)),
            Step::Wait { .. } => {}
        }
    }
}

fn initial(at: usize) -> u32 {
    u32::try_from(at).expect("few arrays") + 10
}

/// Turns words into steps; smaller words are simpler steps.
pub(crate) fn decode(devices: usize, words: &[u64]) -> Vec<Step> {
    words.iter().map(|word| step(devices, *word)).collect()
}

fn step(devices: usize, word: u64) -> Step {
    let part = |shift: u32, of: usize| usize::try_from(word >> shift & 0xff).expect("a byte") % of;
    let own = |shift| devices + part(shift, ARRAYS);
    let any = |shift| part(shift, devices + ARRAYS);
    let (out, factor, value) = (own(8), word >> 40, u32::try_from(word >> 48).expect("16 bits"));
    // What a kernel reads lies on the device of what it writes: the shared array there, or one of its own.
    let device = device_of(devices, out - devices);
    let beside = |shift| {
        let there: Vec<_> = (0..ARRAYS).filter(|at| device_of(devices, *at) == device).collect();
        let at = part(shift, there.len() + 1);
        there.get(at).map_or(device, |at| devices + at)
    };
    match part(0, 16) {
        0..=3 => Step::Axpy { out, x: beside(16), factor },
        4..=6 if beside(16) != out => Step::Scale { out, x: beside(16), factor },
        4..=7 => Step::Fill { to: out, value },
        8 | 9 if any(16) != out => Step::Copy { to: out, from: any(16) },
        8..=10 => Step::CopyIn { to: out, from: part(16, HOSTS) },
        11 | 12 => Step::CopyOut { to: part(16, HOSTS), from: any(8) },
        13 => Step::Add { to: part(16, HOSTS), term: factor },
        14 => Step::Replace { array: out, value },
        _ => Step::Wait { array: any(8) },
    }
}
