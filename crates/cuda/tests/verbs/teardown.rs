//! What is left when all is dropped: nothing.

use crate::{Machine, WORDS};
use weft_cuda::simulated::{Holdings, Settings};

#[test]
fn nothing_is_left_when_all_is_dropped() {
    for seed in 0..50 {
        let machine = Machine::new(Settings { seed, devices: 2, ..Settings::default() }, 2);
        let (x, y) = (machine.array(0, WORDS), machine.array(1, WORDS));
        let from = machine.host(vec![1; WORDS]);
        machine.copy_in(&x, &from);
        machine.copy_in(&y, &from);
        let z = machine.array(0, WORDS);
        machine.launch("scale", &z, &x, 3);
        drop((x, y, z));
        machine.engine.wait_for_all().expect("no op fails");
        let driver = machine.driver.clone();
        drop((machine, from));
        let nothing = Holdings { events: 0, blocks: 0, pinned: 0, streams: 0, images: 0 };
        // The poller's thread may be about to let go of the last of it.
        for _ in 0..2000 {
            if driver.holdings() == nothing {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert_eq!(driver.holdings(), nothing, "seed {seed}");
        assert_eq!(driver.take_hazards(), Vec::<String>::new());
    }
}
