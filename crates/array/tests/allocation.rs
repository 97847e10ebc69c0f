//! Memory that several threads ask for first. The figures are those of the process, so this file has one test.

#![allow(clippy::unwrap_used)]

use std::sync::{Arc, Barrier};
use std::thread;
use weft_array::{Buffer, memory_stats};
use weft_engine::{Engine, Settings};

const BYTES: usize = 1 << 16;
const BUFFERS: usize = if cfg!(miri) { 50 } else { 20_000 };
const THREADS: usize = 3;

/// Parts of one step that run side by side start in one buffer, which has no memory yet.
#[test]
fn of_threads_that_want_memory_first_one_allocates() {
    let engine = Engine::new(Settings::default()).unwrap();
    let buffers: Arc<Vec<_>> = Arc::new((0..BUFFERS).map(|_| Buffer::new(&engine, BYTES)).collect());
    let meet = Arc::new(Barrier::new(THREADS));
    let known = memory_stats();
    let start_all = |_| {
        let (buffers, meet) = (Arc::clone(&buffers), Arc::clone(&meet));
        thread::spawn(move || {
            meet.wait();
            // Who is ahead allocates, which takes longer than to look: so the others catch up, and meet it again and again.
            buffers.iter().map(|buffer| buffer.start().unwrap().addr()).collect::<Vec<_>>()
        })
    };
    let starts: Vec<_> =
        (0..THREADS).map(start_all).collect::<Vec<_>>().into_iter().map(|it| it.join().unwrap()).collect();
    assert!(starts.iter().all(|others| *others == starts[0]));
    let now = memory_stats();
    assert_eq!((now.allocated - known.allocated, now.cached), (BUFFERS * BYTES, known.cached));
    assert_eq!(now.peak - known.in_use, BUFFERS * BYTES);
}
