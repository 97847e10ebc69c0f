//! Random programs on simulated machines, from several threads, against what they would do serially.
//!
//! A failing case is printed as its words. What runs when on the machine is drawn
//! from the first word, so a case runs alike each time as far as the threads of the host let it.

mod graphs;
#[path = "../machine/mod.rs"]
mod machine;
mod model;
mod slices;
#[path = "../../../engine/tests/watchdog/mod.rs"]
mod watchdog;

use machine::{Array, Host, Machine};
use model::{Model, Step, decode};
use proptest::prelude::*;
use watchdog::Watchdog;
use weft_cuda::simulated::Settings;

/// The arrays of one thread of the program.
struct Own<'m> {
    machine: &'m Machine,
    arrays: Vec<Array>,
    hosts: Vec<Host>,
}

impl Own<'_> {
    fn run(&mut self, step: Step) {
        let machine = self.machine;
        match step {
            Step::Axpy { out, x, factor } => machine.launch("axpy", &self.arrays[out], &self.arrays[x], factor),
            Step::Scale { out, x, factor } => machine.launch("scale", &self.arrays[out], &self.arrays[x], factor),
            Step::Fill { to, value } => machine.fill(&self.arrays[to], value),
            Step::Copy { to, from } => machine.copy(&self.arrays[to], &self.arrays[from]),
            Step::CopyIn { to, from } => machine.copy_in(&self.arrays[to], &self.hosts[from]),
            Step::CopyOut { to, from } => machine.copy_out(&self.hosts[to], &self.arrays[from]),
            Step::Add { to, term } => machine.add(&self.hosts[to], term),
            Step::Replace { array, value } => {
                let old = &self.arrays[array];
                let fresh = machine.array(old.buffer.device().index(), old.buffer.bytes() / 8);
                machine.fill(&fresh, value);
                self.arrays[array] = fresh;
            }
            Step::Wait { array } => drop(machine.engine.wait_for_var(&self.arrays[array].variable)),
        }
    }
}

fn check(devices: usize, workers: usize, seed: u64, threads: &[Vec<u64>]) {
    let storages = usize::try_from(seed % 3).expect("small") + 1;
    let machine = Machine::new(Settings { devices, seed, ..Settings::default() }, workers).renaming(storages);
    // Arrays that all threads read and nobody writes to are part of each thread's.
    let shared: Vec<_> = (0..devices).map(|device| machine.array(device, model::WORDS)).collect();
    shared.iter().for_each(|array| machine.fill(array, model::SHARED));
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let run = |words: &Vec<u64>| {
            let steps = decode(devices, words);
            let (machine, mut arrays) = (&machine, shared.clone());
            let thread = move || {
                let mut model = Model::new(devices);
                for (device, value) in model.places() {
                    let array = machine.array(device, model::WORDS);
                    machine.fill(&array, value);
                    arrays.push(array);
                }
                let hosts = model.hosts().map(|words| machine.host(words)).collect();
                let mut own = Own { machine, arrays, hosts };
                for step in steps {
                    model.run(step);
                    own.run(step);
                }
                let arrays: Vec<_> = own.arrays.iter().map(|array| machine.value(array)).collect();
                let hosts: Vec<_> = own.hosts.iter().map(|host| machine.read(host)).collect();
                (model, arrays, hosts)
            };
            scope.spawn(thread)
        };
        let running: Vec<_> = threads.iter().map(run).collect();
        running.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    for (model, arrays, hosts) in outcomes {
        assert_eq!(model.arrays, arrays);
        assert_eq!(model.hosts, hosts);
    }
    machine.check();
}

/// As many cases as the environment says; otherwise few, for each starts threads.
fn config() -> ProptestConfig {
    let default = ProptestConfig::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { default.cases } else { 60 };
    ProptestConfig { cases, failure_persistence: None, ..default }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn one_thread(devices in 1..4_usize, seed: u64, words in prop::collection::vec(any::<u64>(), 1..60)) {
        let _watchdog = Watchdog::new("one thread");
        check(devices, 2, seed, &[words]);
    }

    #[test]
    fn serially(devices in 1..3_usize, seed: u64, words in prop::collection::vec(any::<u64>(), 1..40)) {
        let _watchdog = Watchdog::new("serially");
        check(devices, 0, seed, &[words]);
    }

    #[test]
    fn three_threads(
        devices in 1..4_usize,
        seed: u64,
        threads in prop::collection::vec(prop::collection::vec(any::<u64>(), 1..40), 3),
    ) {
        let _watchdog = Watchdog::new("three threads");
        check(devices, 3, seed, &threads);
    }
}
