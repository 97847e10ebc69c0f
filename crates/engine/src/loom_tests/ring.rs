//! Two pushers, one registrar, two slots: every ticket is taken once, in order, whole.

use super::{push, work};
use crate::sched::Registrar;
use loom::thread;
use std::sync::Arc;

#[test]
fn loom_ring_laps() {
    loom::model(|| {
        let registrar = Arc::new(Registrar::new());
        let pusher = {
            let registrar = Arc::clone(&registrar);
            thread::spawn(move || push(&registrar, &[]))
        };
        let mut taken = 0;
        push(&registrar, &[]);
        // It meets none, one or both of the two.
        work(&registrar, |_| taken += 1);
        pusher.join().unwrap();
        work(&registrar, |_| taken += 1);
        // The next lap, in the same two slots.
        push(&registrar, &[]);
        push(&registrar, &[]);
        work(&registrar, |_| taken += 1);
        assert_eq!(taken, 4);
        assert_eq!(registrar.pending(), 0);
        assert!(registrar.ring.is_idle());
    });
}
