//! Takes the planner's order of least memory, if that needs much less than the recorded one.
//!
//! A recording from a graph comes in the order in which its outputs were asked for: so the recomputed values of a gradient may
//! come long before their use. Programs that use little, or are very long, stay as they are.

use crate::recorded::{Instruction, Recorded, depend};
use weft_plan::{Network, Op, Value, orders_of};

/// Bytes in use below which nobody minds.
const LITTLE: usize = 1 << 20;
/// Instructions above which comparing them takes too long.
const MANY: usize = 20_000;

/// The instructions in the best order.
pub(in crate::passes) fn planned(recorded: &Recorded, instructions: Vec<Instruction>) -> Vec<Instruction> {
    let as_is: Vec<usize> = (0..instructions.len()).collect();
    let most = peak(recorded, &instructions, &as_is);
    if most < LITTLE || instructions.len() > MANY {
        return instructions;
    }
    let Ok(orders) = orders_of(&network(recorded, &instructions)) else { return instructions };
    let measured = orders.into_iter().map(|order| (peak(recorded, &instructions, &order), order));
    match measured.min_by_key(|(peak, _)| *peak) {
        Some((peak, order)) if peak + peak / 16 < most => order.iter().map(|at| instructions[*at].clone()).collect(),
        _ => instructions,
    }
}

/// Whether memory of an entry is in use for some of the instructions alone.
fn comes_and_goes(recorded: &Recorded, entry: usize) -> bool {
    let entry = &recorded.entries[entry];
    entry.is_temporary() && !entry.is_shown
}

/// The most bytes that are in use at a time, in this order.
fn peak(recorded: &Recorded, instructions: &[Instruction], order: &[usize]) -> usize {
    let mut spans: Vec<Option<(usize, usize)>> = vec![None; recorded.entries.len()];
    for (moment, at) in order.iter().enumerate() {
        for place in &instructions[*at].places {
            spans[place.entry].get_or_insert((moment, moment)).1 = moment;
        }
    }
    let (mut begun, mut ended) = (vec![0; order.len()], vec![0; order.len() + 1]);
    for (entry, span) in spans.into_iter().enumerate() {
        if let Some((first, last)) = span.filter(|_| comes_and_goes(recorded, entry)) {
            begun[first] += recorded.entries[entry].bytes;
            ended[last + 1] += recorded.entries[entry].bytes;
        }
    }
    let mut live = 0;
    let moments = begun.iter().zip(&ended).map(|(begun, ended)| {
        live = live + begun - ended;
        live
    });
    moments.max().unwrap_or(0)
}

/// The instructions as the planner takes them: a value for each entry, which whoever touches it first makes.
fn network(recorded: &Recorded, instructions: &[Instruction]) -> Network {
    let mut network = Network::default();
    let mut is_made = Vec::with_capacity(recorded.entries.len());
    for (number, entry) in recorded.entries.iter().enumerate() {
        let external = !comes_and_goes(recorded, number);
        network.value(Value { size: entry.bytes as u64, external, kept: false });
        is_made.push(external);
    }
    let mut last_with_effects = None;
    for (at, (instruction, mut after)) in instructions.iter().zip(depend(instructions)).enumerate() {
        let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
        for place in &instruction.places {
            let listed = if is_made[place.entry] { &mut inputs } else { &mut outputs };
            if !listed.contains(&place.entry) {
                listed.push(place.entry);
            }
        }
        outputs.iter().for_each(|entry| is_made[*entry] = true);
        if instruction.has_effects() || instruction.priority != 0 {
            after.extend(last_with_effects.replace(at)); // among themselves these stay in their order
        }
        network.op(Op { name: instruction.name.clone(), inputs, outputs, after, ..Op::default() });
    }
    network
}
