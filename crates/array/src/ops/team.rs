//! The blocks of one op, run by the worker that has it and by others that have nothing else to do.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weft_engine::trace::Note;
use weft_engine::{Accesses, Cause, Completion, Device, Engine, OpContext, PushOptions, caught};

/// Work that falls into blocks, which may run side by side.
pub(super) trait Blocks: Send + Sync + 'static {
    /// How many there are.
    fn count(&self) -> usize;

    /// Runs one. Each is run once.
    fn block(&self, number: usize);

    /// All have been run, and none has panicked. Answers the op's outcome.
    fn finish(&self) -> Result<(), Cause>;
}

/// Where those who help come from, and what traces say of them.
pub(super) struct Crew {
    pub(super) engine: Engine,
    pub(super) device: Device,
    pub(super) note: Note,
}

impl Crew {
    /// How many could begin now.
    pub(super) fn idle(&self) -> usize {
        self.engine.idle_workers(self.device)
    }
}

struct Team<B> {
    work: B,
    crew: Crew,
    progress: Mutex<Progress>,
}

struct Progress {
    next: usize,
    left: usize,
    /// Helpers that were asked for and have not begun.
    asked: usize,
    /// What the first block that panicked said. The others go on: until the last one ends, the arrays are in use.
    panicked: Option<Cause>,
    completion: Option<Completion>,
}

impl<B: Blocks> Team<B> {
    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs blocks until none is left to be begun. Who runs the last one completes the op.
    fn work(self: &Arc<Self>) {
        loop {
            let (number, others) = {
                let mut progress = self.progress();
                if progress.next == self.work.count() {
                    return;
                }
                progress.next += 1;
                let left = self.work.count() - progress.next;
                let others = if progress.asked == 0 && left > 0 { self.crew.idle().min(left) } else { 0 };
                progress.asked += others;
                (progress.next - 1, others)
            };
            (0..others).for_each(|_| self.ask());
            let ran = caught(|| {
                self.work.block(number);
                Ok(())
            });
            let (completion, panicked) = {
                let mut progress = self.progress();
                if let Err(panicked) = ran {
                    progress.panicked.get_or_insert(panicked);
                }
                progress.left -= 1;
                if progress.left > 0 {
                    continue;
                }
                (progress.completion.take(), progress.panicked.take())
            };
            let outcome = panicked.map_or_else(|| caught(|| self.work.finish()), Err);
            if let Some(completion) = completion {
                // Nobody else has the token.
                let _ = completion.complete(outcome);
            }
        }
    }

    /// Asks for one helper.
    fn ask(self: &Arc<Self>) {
        let (team, engine) = (Arc::clone(self), &self.crew.engine);
        let name = engine.is_traced().then_some("helper");
        let options =
            PushOptions { device: self.crew.device, name, note: self.crew.note.unnamed(), ..PushOptions::default() };
        let help = move |_: &mut OpContext<'_>| {
            team.progress().asked -= 1;
            team.work();
            Ok(())
        };
        // An op may push whether the engine is closed or not.
        let _ = engine.push_unlimited(help, &mut Accesses::new(engine), &options);
    }
}

/// Runs the blocks of an op: alone, and from when another worker has nothing to do, with all who have not. Without a crew
/// they are not worth the hand-over.
pub(super) fn run<B: Blocks>(work: B, context: &mut OpContext<'_>, crew: Option<Crew>) -> Result<(), Cause> {
    let (count, mut next) = (work.count(), 0);
    let is_alone = |next: usize| count - next == 1 || crew.as_ref().is_none_or(|crew| crew.idle() == 0);
    while next < count && is_alone(next) {
        work.block(next);
        next += 1;
    }
    let Some(crew) = crew.filter(|_| next < count) else { return work.finish() };
    let progress = Progress { next, left: count - next, asked: 0, panicked: None, completion: Some(context.defer()) };
    Arc::new(Team { work, crew, progress: Mutex::new(progress) }).work();
    Ok(())
}
