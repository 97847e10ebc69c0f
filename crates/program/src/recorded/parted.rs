//! A recording in two parts, which become a program each: a function, and its gradient.
//!
//! The second part takes its inputs from the memory of the first: arguments, results, and intermediate values, which the
//! first part then hands out as further results (*kept*). The further results are named by *numbers*: buffers are counted as
//! calls come to them, so that two recordings of one function agree on them.

use super::lower::address;
use super::{Argument, Recorded, whole};
use crate::ProgramError;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use weft_array::recording::Transcript;
use weft_array::{Access, Array, Buffer};

/// Where an argument of the second part comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// The argument of this number of the first part.
    Argument(usize),
    /// All the memory of this result of the first part, as bytes.
    Result(usize),
    /// All of the buffer of this number, as bytes, which the first part hands out.
    Kept(usize),
    /// The argument of the second part alone, by its number.
    Seed(usize),
}

/// Both parts.
pub struct Parted {
    /// Returns the results, then each buffer of `kept` as bytes.
    pub first: Recorded,
    /// Takes the memory that `taken` tells.
    pub second: Recorded,
    /// Of each argument of the second part.
    pub taken: Vec<Taken>,
    /// Numbers of the buffers that the first part hands out besides its results.
    pub kept: Vec<usize>,
    /// Numbers of the arguments that the first part writes to.
    pub written: Vec<usize>,
    /// Whether the first part does nothing but to compute its results and write to arguments.
    pub plain: bool,
    /// The same for recordings whose first parts do the same to memory of the same numbers.
    pub digest: u64,
}

struct Met {
    number: usize,
    written: bool,
}

/// The fate of the calls of the first part.
struct First {
    met: HashMap<usize, Met>,
    digest: DefaultHasher,
}

impl First {
    fn of(transcript: &Transcript, at: usize) -> Self {
        let mut first = Self { met: HashMap::new(), digest: DefaultHasher::new() };
        for call in &transcript.calls()[..at] {
            (&call.name, call.place, call.arrays.len()).hash(&mut first.digest);
            for (array, access) in &call.arrays {
                let number = first.met.len();
                let met = first.met.entry(address(array.buffer())).or_insert(Met { number, written: false });
                met.written |= *access != Access::Read;
                let layout = array.layout();
                (met.number, &layout.shape[..], &layout.strides[..], layout.offset).hash(&mut first.digest);
                (array.dtype().name(), *access == Access::Read).hash(&mut first.digest);
            }
        }
        first
    }
}

impl Recorded {
    /// Parts a recording after its first `at` calls: the first part returns `results`, the second one `further`. The
    /// last `seeds` arguments are those of the second part alone. None if the second part writes to values that the
    /// first one hands on, or comes to the very arrays that were given as arguments.
    pub fn parted(
        transcript: Transcript,
        at: usize,
        mut arguments: Vec<Argument>,
        seeds: usize,
        results: &[Array],
        further: &[Array],
    ) -> Result<Option<Parted>, ProgramError> {
        let seeds = arguments.split_off(arguments.len() - seeds);
        let first = First::of(&transcript, at);
        let at_of = |list: &[Argument], buffer: &Arc<Buffer>| {
            list.iter().position(|argument| Arc::ptr_eq(argument.placeholder.buffer(), buffer))
        };
        let later =
            transcript.calls()[at..].iter().flat_map(|call| call.arrays.iter().map(|(array, access)| (array, *access)));
        let (mut touched, mut kept): (Vec<usize>, Vec<(usize, Array)>) = (Vec::new(), Vec::new());
        let mut shown: Vec<(usize, Array)> = Vec::new();
        for (array, access) in later.chain(further.iter().map(|array| (array, Access::Read))) {
            let buffer = array.buffer();
            let closed = |given: &Argument| {
                Arc::ptr_eq(given.array.buffer(), buffer) && !Arc::ptr_eq(given.placeholder.buffer(), buffer)
            };
            let is_seed = at_of(&seeds, buffer).is_some();
            let argument = at_of(&arguments, buffer);
            let met = first.met.get(&address(buffer)).filter(|met| met.written && argument.is_none());
            let own =
                buffer.recording().is_some() || transcript.constants().iter().any(|known| Arc::ptr_eq(known, buffer));
            let handed_on = argument.is_some() || is_seed || (met.is_some() && own);
            if arguments.iter().any(closed) || (handed_on && access != Access::Read) {
                return Ok(None);
            }
            touched.extend(argument);
            if let (Some(met), true, false) = (met, own, is_seed) {
                match results.iter().position(|result| Arc::ptr_eq(result.buffer(), buffer)) {
                    Some(result) if !shown.iter().any(|(known, _)| *known == result) => {
                        shown.push((result, whole(buffer)?));
                    }
                    None if !kept.iter().any(|(known, _)| *known == met.number) => {
                        kept.push((met.number, whole(buffer)?));
                    }
                    _ => {}
                }
            }
        }
        kept.sort_by_key(|(number, _)| *number);
        // Those that share memory go together.
        let is_touched = |number: &usize| {
            touched
                .iter()
                .any(|&at| Arc::ptr_eq(arguments[at].placeholder.buffer(), arguments[*number].placeholder.buffer()))
        };
        let own = |array: &Array| Argument { placeholder: array.clone(), array: array.clone() };
        let mut taken: Vec<(Taken, Argument)> = Vec::new();
        for number in (0..arguments.len()).filter(is_touched) {
            taken.push((Taken::Argument(number), own(&arguments[number].placeholder)));
        }
        taken.extend(shown.iter().map(|(result, array)| (Taken::Result(*result), own(array))));
        taken.extend(kept.iter().map(|(number, array)| (Taken::Kept(*number), own(array))));
        taken.extend(seeds.iter().enumerate().map(|(at, seed)| (Taken::Seed(at), own(&seed.placeholder))));
        let (head, rest) = transcript.split(at);
        let (taken, inputs) = taken.into_iter().unzip();
        let mut made = results.to_vec();
        made.extend(kept.iter().map(|(_, array)| array.clone()));
        let written = |number: &usize| {
            first.met.get(&address(arguments[*number].placeholder.buffer())).is_some_and(|met| met.written)
        };
        let written = (0..arguments.len()).filter(written).collect();
        let second = Self::new(rest, inputs, further)?;
        let head = Self::new(head, arguments, &made)?;
        let plain = head.states_stay() && !head.instructions.iter().any(super::Instruction::has_effects);
        let kept = kept.into_iter().map(|(number, _)| number).collect();
        Ok(Some(Parted { first: head, second, taken, kept, written, plain, digest: first.digest.finish() }))
    }

    fn states_stay(&self) -> bool {
        self.entries.iter().all(|entry| !entry.written || !matches!(entry.source, super::Source::State(_)))
    }
}
