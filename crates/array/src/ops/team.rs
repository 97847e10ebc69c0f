//! The blocks of one op, run by the worker that has it and by idle ones that help.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weft_engine::trace::Note;
use weft_engine::{Accesses, Cause, Completion, Device, Engine, OpContext, PushOptions};

/// Work that falls into blocks, which may run side by side.
pub(super) trait Blocks: Send + Sync + 'static {
    /// How many there are.
    fn count(&self) -> usize;

    /// Runs one. Each is run once.
    fn block(&self, number: usize);

    /// All have been run. Answers the op's outcome.
    fn finish(&self) -> Result<(), Cause>;
}

struct Team<B> {
    work: B,
    progress: Mutex<Progress>,
}

struct Progress {
    next: usize,
    left: usize,
    completion: Option<Completion>,
}

impl<B: Blocks> Team<B> {
    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs blocks until none is left to be begun. Who runs the last one completes the op.
    fn work(&self) {
        loop {
            let number = {
                let mut progress = self.progress();
                if progress.next == self.work.count() {
                    return;
                }
                progress.next += 1;
                progress.next - 1
            };
            self.work.block(number);
            let completion = {
                let mut progress = self.progress();
                progress.left -= 1;
                if progress.left > 0 {
                    continue;
                }
                progress.completion.take()
            };
            let outcome = self.work.finish();
            if let Some(completion) = completion {
                // Nobody else has the token.
                let _ = completion.complete(outcome);
            }
        }
    }
}

/// Runs the blocks of an op with so many helpers, which are asked for by pushes to `engine`.
pub(super) fn run<B: Blocks>(
    work: B,
    context: &mut OpContext<'_>,
    helpers: usize,
    engine: impl FnOnce() -> Engine,
    (device, note): (Device, Note),
) -> Result<(), Cause> {
    if helpers == 0 {
        (0..work.count()).for_each(|number| work.block(number));
        return work.finish();
    }
    let engine = engine();
    let progress = Progress { next: 0, left: work.count(), completion: Some(context.defer()) };
    let team = Arc::new(Team { work, progress: Mutex::new(progress) });
    let name = engine.is_traced().then_some("helper");
    let options = PushOptions { device, name, note: note.unnamed(), ..PushOptions::default() };
    for _ in 0..helpers {
        let team = Arc::clone(&team);
        let help = move |_: &mut OpContext<'_>| {
            team.work();
            Ok(())
        };
        // An op may push whether the engine is closed or not.
        let _ = engine.push_unlimited(help, &mut Accesses::new(&engine), &options);
    }
    team.work();
    Ok(())
}
