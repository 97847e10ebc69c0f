//! Copies.

use crate::{Machine, WORDS};
use weft_cuda::simulated::Settings;

#[test]
fn what_goes_in_and_through_a_kernel_comes_out() {
    for seed in 0..200 {
        let machine = Machine::new(Settings { seed, ..Settings::default() }, 2);
        let (x, y) = (machine.array(0, WORDS), machine.array(0, WORDS));
        let from = machine.host((0..WORDS as u64).collect());
        let to = machine.host(vec![0; WORDS]);
        machine.copy_in(&x, &from);
        machine.launch("scale", &y, &x, 3);
        machine.launch("axpy", &x, &y, 2);
        machine.copy_out(&to, &x);
        assert_eq!(machine.read(&to), (0..WORDS as u64).map(|word| word * 7).collect::<Vec<_>>());
    }
}
