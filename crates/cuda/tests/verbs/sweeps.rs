//! Pipelines that go over the same slices again, in virtual time.

use crate::{KERNEL, Machine, Watchdog};
use std::sync::Arc;
use weft_cuda::simulated::{Settings, Speeds};
use weft_engine::{AccessKind, Variable};

const CHUNKS: usize = 40;
const SWEEPS: usize = 2;
/// Words of a chunk.
const WORDS: usize = 1000;
const BYTES: u64 = 8 * WORDS as u64;

/// Copy in, kernel, copy out over the chunks of two arrays, so often, written serially. Answers the virtual time.
fn sweep(machine: &Machine, sweeps: usize, pageable: bool) -> u64 {
    let pinned = || Arc::new(machine.device(0).pinned(CHUNKS * WORDS * 8).expect("memory"));
    let ((inputs, outputs), host) = ((pinned(), pinned()), machine.engine.new_variable(None));
    let owns: Vec<Variable> = (0..CHUNKS).map(|_| machine.engine.new_variable(None)).collect();
    let all = CHUNKS * WORDS;
    let (d, e) = (machine.sliced(0, all, CHUNKS), machine.sliced(0, all, CHUNKS));
    for _ in 0..sweeps {
        for (chunk, own) in owns.iter().enumerate() {
            let (at, words) = (chunk * WORDS, chunk * WORDS..(chunk + 1) * WORDS);
            let (x, y) = (d.slice(words.clone()), e.slice(words));
            if pageable {
                machine.copy_in_slice(&x, vec![1; WORDS]);
            } else {
                machine.copy_pinned_slice(&x, (&inputs, at), AccessKind::Mutate, Some(&host));
            }
            machine.launch_slice("scale", &y, &x, 2);
            if pageable {
                machine.copy_out_slice(&y);
            } else {
                machine.copy_pinned_slice(&y, (&outputs, at), AccessKind::Read, Some(own));
            }
        }
    }
    machine.engine.wait_for_all().expect("no op fails");
    machine.driver.run_until_idle();
    machine.check();
    machine.driver.time()
}

/// What comes first is issued first, so that no copy stands on its stream before one that could go: whatever the sweeps,
/// the longest of the three is what they take.
#[test]
fn a_second_sweep_takes_as_long_as_the_first() {
    let _watchdog = Watchdog::new("a second sweep takes as long as the first");
    for (workers, pageable) in [(1, false), (2, false), (4, false), (1, true), (2, true), (4, true)] {
        // A staging block that is used again takes the end of the copy before along into virtual time, by chance of the
        // host's: where kernels fill the device without a gap, that shows.
        let links = [(1000, 8000), (3200, KERNEL / 4), (5000, KERNEL / 4)];
        for &(link, longest) in &links[..if pageable { 1 } else { links.len() }] {
            for seed in 0..3 {
                let speeds = Speeds { link, ..Speeds::default() };
                let parts = weft_cuda::Settings::default().parts;
                let machine = Machine::with_parts(Settings { speeds, seed, ..Settings::default() }, workers, parts);
                let (time, least) = (sweep(&machine, SWEEPS, pageable), longest * (SWEEPS * CHUNKS) as u64);
                // The first chunk's way in, and the last one's through the kernel and out.
                let ends = 2 * BYTES * 1000 / link + KERNEL;
                assert!(
                    time <= least * 105 / 100 + ends,
                    "{workers} workers, pageable {pageable}, link {link}, seed {seed}: {time} ns instead of {least} ns"
                );
            }
        }
    }
}
