//! Two pushers, one registrar, two slots: every ticket is taken once, in order, whole.

use crate::op::Op;
use crate::sched::Ring;
use crate::var::Seat;
use loom::cell::UnsafeCell;
use loom::thread;
use std::mem::MaybeUninit;
use std::sync::Arc;

const CELLS: usize = 4;
const EMPTY: u64 = u64::MAX;

/// A ring, and beside each cell a place that stands for its content: loom objects if two threads
/// are there at the same time, or if one does not see what the other left.
struct Shared {
    ring: Ring,
    cells: *mut Op,
    contents: Vec<UnsafeCell<u64>>,
}

// SAFETY: nobody looks into the cells, and loom watches their contents.
unsafe impl Sync for Shared {}
// SAFETY: as above.
unsafe impl Send for Shared {}

impl Shared {
    /// Answers the cells that are not in the ring, too.
    fn new() -> (Arc<Self>, Vec<*mut Op>) {
        let cells: Box<[MaybeUninit<Op>; CELLS]> = Box::new([const { MaybeUninit::uninit() }; CELLS]);
        let cells: *mut Op = Box::into_raw(cells).cast();
        let mut spare: Vec<_> = (0..CELLS).map(|at| cells.wrapping_add(at)).collect();
        let ring = Ring::new(|| spare.pop().expect("more cells than slots"));
        let contents = (0..CELLS).map(|_| UnsafeCell::new(EMPTY)).collect();
        (Arc::new(Self { ring, cells, contents }), spare)
    }

    fn content(&self, cell: *mut Op) -> &UnsafeCell<u64> {
        // SAFETY: both are in one allocation.
        let at = unsafe { cell.offset_from_unsigned(self.cells) };
        &self.contents[at]
    }

    /// Pushes once, calling `help` while the slot's last lap lasts.
    fn push(&self, mut help: impl FnMut()) {
        let ticket = self.ring.claim();
        let cell = loop {
            match self.ring.cell(ticket, 1) {
                Some(cell) => break cell,
                None => help(),
            }
        };
        // SAFETY: loom checks it.
        let before = self.content(cell).with_mut(|content| unsafe { content.replace(ticket) });
        assert_eq!(before, EMPTY);
        self.ring.publish(ticket);
    }
}

/// The registrar's side.
struct Registrar {
    shared: Arc<Shared>,
    spare: Vec<*mut Op>,
    taken: u64,
}

impl Registrar {
    /// Takes what is there.
    fn take(&mut self) {
        // SAFETY: there is one of its kind.
        let seat = unsafe { Seat::take() };
        while let Some(cell) = self.shared.ring.take(&seat, || self.spare.pop().expect("one for each that goes")) {
            // SAFETY: loom checks it.
            let content = self.shared.content(cell).with_mut(|content| unsafe { content.replace(EMPTY) });
            assert_eq!(content, self.taken, "in the order of tickets");
            self.spare.insert(0, cell);
            self.taken += 1;
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: made by Box::into_raw in new().
        drop(unsafe { Box::from_raw(self.cells.cast::<[MaybeUninit<Op>; CELLS]>()) });
    }
}

/// One thread pushes and takes, as a pusher with the role does; the other one pushes.
fn model(mine: u64) {
    loom::model(move || {
        let (shared, spare) = Shared::new();
        let mut registrar = Registrar { shared: Arc::clone(&shared), spare, taken: 0 };
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.push(thread::yield_now))
        };
        for _ in 0..mine {
            shared.push(|| {
                registrar.take();
                thread::yield_now();
            });
        }
        registrar.take();
        other.join().unwrap();
        registrar.take();
        assert_eq!(registrar.taken, mine + 1);
        assert!(shared.ring.is_idle());
    });
}

#[test]
fn ring_of_two_pushers() {
    model(1);
}

/// More pushes than slots: some have to wait for the next lap.
#[test]
fn ring_laps() {
    model(2);
    model(3);
}
