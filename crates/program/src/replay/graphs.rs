//! Which steps of a device are issued together.
//!
//! A *part* is a set of instructions that do nothing but to issue on one device, and between which nothing else has to happen: no
//! path leads from one of them through another instruction back to one of them. It is one step of the engine's, and they are its
//! members: each keeps its own dependencies and ports, so it is left out, or fails, on its own. The step issues those that are not
//! left out: all as one as long as nothing is wrong, and each by itself where an input has failed or the driver refuses.
//!
//! | an instruction | is on level |
//! |---|---|
//! | that waits for none | 0 |
//! | that waits for others | the highest of theirs; one more than that of each that it is in no part with |
//!
//! A part is the work of one device on one level, in order, [`MOST`] at a time. A port of a member is left when the part was
//! issued, and the part waits for the ports of all: its size bounds the loss. Work that waits for the host, or for another device,
//! is on a higher level than the rest.

use crate::recorded::Instruction;
use weft_array::Step;

/// Members of a part at most, and at least.
const MOST: usize = 64;
const LEAST: usize = 2;

/// The order of instructions as steps, and the parts.
#[derive(Default)]
pub(super) struct Parts {
    /// Instructions, those of a part side by side.
    pub(super) order: Vec<usize>,
    /// For each part, its first member's place in the order, and how many it has.
    pub(super) parts: Vec<(usize, usize)>,
}

/// The device of an instruction that only issues.
pub(super) fn issues_on(instruction: &Instruction) -> Option<u16> {
    let Step::Opaque(opaque) = &instruction.step else { return None };
    let plain = instruction.priority == 0 && !instruction.always_run && instruction.variables.is_empty();
    if plain { opaque.issues_on() } else { None }
}

impl Parts {
    /// Those of instructions that wait for these before them.
    pub(super) fn new(instructions: &[Instruction], before: &[Vec<usize>]) -> Self {
        let devices: Vec<Option<u16>> = instructions.iter().map(issues_on).collect();
        let mut levels = vec![0; instructions.len()];
        for at in 0..levels.len() {
            let apart = |other: usize| devices[at].or(devices[other]).is_some() && devices[at] != devices[other];
            let least = before[at].iter().map(|other| levels[*other] + usize::from(apart(*other)));
            levels[at] = least.max().unwrap_or(0);
        }
        let mut order: Vec<usize> = (0..levels.len()).collect();
        order.sort_by_key(|at| (levels[*at], devices[*at]));
        let mut parts = Vec::new();
        let mut first = 0;
        for group in order.chunk_by(|one, other| (levels[*one], devices[*one]) == (levels[*other], devices[*other])) {
            if devices[group[0]].is_some() {
                let sizes = group.chunks(MOST).map(<[usize]>::len).filter(|count| *count >= LEAST);
                parts.extend(sizes.enumerate().map(|(number, count)| (first + number * MOST, count)));
            }
            first += group.len();
        }
        Self { order, parts }
    }
}

#[cfg(test)]
mod tests {
    use super::{LEAST, MOST, Parts};
    use crate::recorded::Instruction;
    use std::sync::Arc;
    use weft_array::{Opaque, Operands, Step};
    use weft_engine::{Cause, Device, OpContext};

    struct On(Option<u16>);

    impl Opaque for On {
        fn is_hosted(&self) -> bool {
            false
        }

        unsafe fn run(&self, _: &Operands, _: &mut OpContext<'_>) -> Result<(), Cause> {
            Ok(())
        }

        fn issues_on(&self) -> Option<u16> {
            self.0
        }
    }

    fn instruction(number: usize, device: Option<u16>) -> Instruction {
        Instruction {
            step: Step::Opaque(Arc::new(On(device))),
            places: Vec::new(),
            variables: Vec::new(),
            name: "op".to_owned(),
            place: 0,
            number,
            priority: 0,
            device: Device::default(),
            always_run: false,
            at_arrays: false,
        }
    }

    /// The members of each part.
    fn parts(devices: &[Option<u16>], before: &[&[usize]]) -> Vec<Vec<usize>> {
        let instructions: Vec<_> = devices.iter().enumerate().map(|(at, device)| instruction(at, *device)).collect();
        let before: Vec<Vec<usize>> = before.iter().map(|before| before.to_vec()).collect();
        let found = Parts::new(&instructions, &before);
        let place = |at: usize| found.order.iter().position(|other| *other == at);
        for (at, before) in before.iter().enumerate() {
            assert!(before.iter().all(|before| place(*before) < place(at)), "{:?}", found.order);
        }
        found.parts.iter().map(|(first, count)| found.order[*first..first + count].to_vec()).collect()
    }

    #[test]
    fn nothing_else_happens_between_the_members_of_a_part() {
        let (a, b, host) = (Some(1), Some(2), None);
        assert_eq!(parts(&[a, a, a], &[&[], &[0], &[]]), [[0, 1, 2]]);
        // The host looks at the first one, and the third one at the host's findings.
        assert_eq!(parts(&[a, host, a, a], &[&[], &[0], &[1], &[0]]), [[0, 3]]);
        assert_eq!(parts(&[a, host, a, a], &[&[], &[], &[1], &[2]]), [[2, 3]]);
        // From one device to the other and back.
        assert_eq!(parts(&[a, b, a, b, a], &[&[], &[0], &[1], &[0], &[0]]), [vec![0, 4], vec![1, 3]]);
    }

    #[test]
    fn a_part_is_bounded() {
        let devices = vec![Some(1); 2 * MOST + LEAST - 1];
        let found = parts(&devices, &vec![&[][..]; devices.len()]);
        assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [MOST, MOST]);
    }
}
