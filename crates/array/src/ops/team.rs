//! The blocks of one op, run by its worker and by idle ones.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weft_engine::trace::Note;
use weft_engine::{Accesses, Cause, Completion, Device, Engine, OpContext, PushOptions, caught};

/// Work made of blocks, which may run side by side.
pub(super) trait Blocks: Send + Sync + 'static {
    /// The number of blocks.
    fn count(&self) -> usize;

    /// Runs a block. Each runs once.
    fn block(&self, number: usize);

    /// Called after all blocks, if none has panicked. Returns the op's outcome.
    fn finish(&self) -> Result<(), Cause>;
}

/// The engine that lends helpers, and their note in traces.
pub(super) struct Crew {
    pub(super) engine: Engine,
    pub(super) device: Device,
    pub(super) note: Note,
}

impl Crew {
    /// The number of helpers that could begin now.
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
    /// Helpers that were requested and have not begun.
    asked: usize,
    /// The message of the first block that panicked. The others go on: until the last one ends, the arrays are in use.
    panicked: Option<Cause>,
    completion: Option<Completion>,
}

impl<B: Blocks> Team<B> {
    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs blocks until all have begun. The thread that runs the last one completes the op.
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
                // The token has no other holder.
                let _ = completion.complete(outcome);
            }
        }
    }

    /// Requests one helper.
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
        // An op may push even on a closed engine.
        let _ = engine.push_unlimited(help, &mut Accesses::new(engine), &options);
    }
}

/// Runs the blocks of an op: alone at first, and together with all idle workers once there are any. Without a crew the
/// blocks are not worth the hand-over.
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
