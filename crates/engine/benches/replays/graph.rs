//! A program as a replay: who needs whom is found from its reads and mutations.

use crate::program::Program;
use weft_engine::{AccessKind, Engine, PortId, Replay, ReplayBuilder, StepContext, StepId, StepOptions};

/// What was done to a variable last.
#[derive(Clone, Default)]
struct Last {
    mutation: Option<StepId>,
    reads: Vec<StepId>,
}

/// A replay of the program, and its ports: one for each variable, or one for the last step.
pub(crate) fn replay<W: Send + Sync + 'static, const READS: usize>(
    engine: &Engine,
    program: &Program<READS>,
    ports: bool,
    run: fn(&W, usize),
) -> (Replay<W>, Vec<PortId>) {
    let mut builder = ReplayBuilder::<W>::new();
    let ids: Vec<_> = (0..if ports { program.variables } else { 1 }).map(|_| builder.port()).collect();
    let mut variables = vec![Last::default(); program.variables];
    for (id, op) in program.ops.iter().enumerate() {
        let work = move |work: &W, _: &mut StepContext<'_, '_>| {
            run(work, id);
            Ok(())
        };
        let step = builder.step(work, &StepOptions::default());
        for &read in &op.reads[..op.read_count] {
            if let Some(mutation) = variables[read].mutation {
                builder.needs(step, mutation).expect("an earlier step");
            }
            if ports {
                builder.uses(step, ids[read], AccessKind::Read).expect("there is the port");
            }
            variables[read].reads.push(step);
        }
        if let Some(target) = op.mutates {
            let last = std::mem::take(&mut variables[target]);
            if let Some(mutation) = last.mutation.filter(|_| last.reads.is_empty()) {
                builder.needs(step, mutation).expect("an earlier step");
            }
            for read in last.reads.into_iter().filter(|&read| read != step) {
                builder.follows(step, read).expect("an earlier step");
            }
            if ports {
                builder.uses(step, ids[target], AccessKind::Mutate).expect("there is the port");
            }
            variables[target].mutation = Some(step);
        }
        if !ports && id + 1 == program.ops.len() {
            builder.uses(step, ids[0], AccessKind::Mutate).expect("there is the port");
        }
    }
    (engine.new_replay(builder).expect("a replay"), ids)
}
