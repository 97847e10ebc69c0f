//! Pushing: from checked accesses to a filled ring slot.

use super::wait::Ticks;
use super::{Accesses, Core, Engine, OnLimit, Tick, Wait};
use crate::EngineError;
use crate::op::{Device, Extra, Op, OpFlags, OpKind, Payload, RawPayload, current};
use crate::quiet::drop_later;
use crate::sync::{Ordering, spin_hint};
use crate::trace::{Kind, Note};
use crate::waiter::Waiter;
use std::mem::MaybeUninit;

/// The options of an op, besides its payload and its accesses.
#[derive(Debug, Clone, Copy, Default)]
pub struct PushOptions<'a> {
    /// Ready ops with a higher one go first.
    pub priority: i32,
    /// For messages.
    pub name: Option<&'a str>,
    /// Where it runs, under a policy that tells devices apart.
    pub device: Device,
    /// Whether it runs even if its inputs have failed, or the engine is being cancelled.
    pub always_run: bool,
    /// Whether the variables that it mutates stand, behind it, for the same memory as those that it reads: its payload
    /// does nothing, and where it is skipped, changes begun in those were begun in that memory, too.
    pub hands_on: bool,
    /// Bytes it holds while it is pending.
    pub bytes: u64,
    /// Its record in a trace, if that is more than its name.
    pub note: Note,
}

/// The kind of an op without a note.
const fn kind_of<P: Payload>() -> Kind {
    if P::HOSTED { Kind::Callable } else { Kind::Native }
}

/// Unsettled ops that all stay in a core's cache, and pushes between two looks at them.
const IN_CACHE: u64 = 4096;
const LOOK: u64 = 512;
/// Pauses for which a pusher gives way, 1 us, how often at most, and ops that must be settled in each.
const WAY_PAUSES: u32 = 64;
const WAY_LOOKS: u32 = 64;
const QUICK: u64 = 4;

impl Core {
    /// Lets a worker that gets through short ops catch up: cells written too far ahead of it have left the cache when
    /// it comes there, and both are slower for it.
    #[inline]
    fn give_way(&self) {
        let claimed = self.pool().registrar.ring.claimed();
        // ORDERING: a hint.
        if claimed >= self.give_way_at.load(Ordering::Relaxed) {
            self.give_way_now(claimed);
        }
    }

    #[cold]
    fn give_way_now(&self, claimed: u64) {
        let registrar = &self.pool().registrar;
        let mut settled = registrar.settled();
        for _ in 0..WAY_LOOKS {
            if claimed <= settled + IN_CACHE {
                break;
            }
            (0..WAY_PAUSES).for_each(|_| spin_hint());
            let before = std::mem::replace(&mut settled, registrar.settled());
            if settled - before < QUICK {
                break; // its ops take their time, or it has lost its processor
            }
        }
        // ORDERING: a hint.
        self.give_way_at.store(claimed.max(settled + IN_CACHE) + LOOK, Ordering::Relaxed);
    }

    /// The pending amount and its limit, if one more op with `bytes` might exceed it. Dropped variables and waits that
    /// are not yet settled are counted too: see [`exact_excess`](Self::exact_excess).
    #[inline]
    fn excess(&self, bytes: u64) -> Option<(u64, u64, &'static str)> {
        let (settings, registrar) = (&self.settings, &self.pool().registrar);
        let claimed = registrar.ring.claimed();
        // ORDERING: a count that may lag, which only makes the look below come early.
        if claimed.wrapping_sub(self.settled_seen.load(Ordering::Relaxed)) >= settings.max_pending_ops {
            let settled = registrar.settled();
            // ORDERING: as above.
            self.settled_seen.store(settled, Ordering::Relaxed);
            let pending = claimed.saturating_sub(settled);
            if pending >= settings.max_pending_ops {
                return Some((pending + 1, settings.max_pending_ops, "ops"));
            }
        }
        self.excess_bytes(bytes)
    }

    /// The same, of ops alone.
    fn exact_excess(&self, bytes: u64) -> Option<(u64, u64, &'static str)> {
        let (pool, limit) = (self.pool(), self.settings.max_pending_ops);
        let mut turn = pool.turn();
        turn.catch_up();
        let pending = turn.parts().0.pending();
        drop(turn);
        if pending >= limit { Some((pending + 1, limit, "ops")) } else { self.excess_bytes(bytes) }
    }

    #[inline]
    fn excess_bytes(&self, bytes: u64) -> Option<(u64, u64, &'static str)> {
        let (settings, registrar) = (&self.settings, &self.pool().registrar);
        if bytes > 0 {
            let held = registrar.bytes();
            // One op that is larger than the limit may still run alone.
            if held > 0 && held + bytes > settings.max_pending_bytes {
                return Some((held + bytes, settings.max_pending_bytes, "bytes"));
            }
        }
        None
    }
}

impl Engine {
    /// Whether a push of an op with `bytes` would be within the limits, or is exempt from them.
    #[must_use]
    #[inline]
    pub fn has_room(&self, bytes: u64) -> bool {
        self.core.excess(bytes).is_none() || self.is_unlimited() || self.core.exact_excess(bytes).is_none()
    }

    /// Whether the calling thread may push past the limits.
    fn is_unlimited(&self) -> bool {
        self.is_inside_op() || self.core.pool().placement().is_inline()
    }

    /// Waits until there is room for an op with `bytes`, or answers the obstacle if the engine is to raise.
    pub fn wait_for_room(&self, bytes: u64, tick: Option<Tick<'_>>) -> Result<(), EngineError> {
        let mut wait = Wait { tick, ..Wait::default() };
        let (mut waited, mut ticks) = (None, Ticks::new());
        while self.core.excess(bytes).is_some() && !self.is_unlimited() {
            ticks.go_on(&mut wait)?; // others may take the room, again and again
            if self.core.is_closed() {
                return Err(self.core.closed_error());
            }
            let Some((pending, limit, unit)) = self.core.exact_excess(bytes) else { break };
            if self.core.settings.on_limit == OnLimit::Raise {
                return Err(EngineError::PendingLimit { pending, limit, unit });
            }
            waited = waited.or_else(|| self.start_span());
            let settings = &self.core.settings;
            let ops = settings.max_pending_ops - settings.max_pending_ops.div_ceil(4).max(1);
            let held = if bytes > 0 { settings.max_pending_bytes.saturating_sub(bytes) } else { u64::MAX };
            super::wait::park_until(
                &self.core,
                &mut wait,
                ("room for another op", "push", None),
                |waiter: &std::sync::Arc<Waiter>, _| {
                    let pool = self.core.pool();
                    let mut turn = pool.turn();
                    turn.catch_up();
                    let fits = turn.parts().0.pending() <= ops && pool.registrar.bytes() <= held;
                    let room = fits || self.core.is_closed();
                    if room {
                        // No worker sleeps on it yet.
                        let _ = waiter.answer(None);
                    } else {
                        turn.parts().0.room.push((std::sync::Arc::clone(waiter), ops, held));
                    }
                    Ok(())
                },
            )?;
        }
        if let Some(span) = waited {
            self.record_wait_for_room(span);
        }
        Ok(())
    }

    /// Pushes an op. It runs when its accesses are granted; pushing may wait only for room.
    ///
    /// A push that fails has changed nothing, and drops the payload: later, while the thread is [quiet](crate::Quiet).
    #[inline]
    pub fn push<P: Payload>(
        &self,
        payload: P,
        accesses: &mut Accesses<'_>,
        options: &PushOptions<'_>,
    ) -> Result<(), EngineError> {
        if self.core.excess(options.bytes).is_some() {
            self.wait_for_room(options.bytes, None)?;
        }
        self.push_unlimited(payload, accesses, options)
    }

    /// [`push`](Self::push) without a look at the limits, for callers that have waited for room
    /// in their own way.
    #[inline]
    pub fn push_unlimited<P: Payload>(
        &self,
        payload: P,
        accesses: &mut Accesses<'_>,
        options: &PushOptions<'_>,
    ) -> Result<(), EngineError> {
        let pushed = self.enqueue(payload, accesses, options);
        self.follow_up();
        self.core.give_way();
        pushed
    }

    /// [`push_unlimited`](Self::push_unlimited) for callers that hold a lock of their own, and keep the thread
    /// [quiet](crate::Quiet) meanwhile: no payload runs on this thread before [`follow_up`](Self::follow_up), which they
    /// owe, and none is dropped before the thread is quiet no more.
    #[inline]
    pub fn enqueue<P: Payload>(
        &self,
        payload: P,
        accesses: &mut Accesses<'_>,
        options: &PushOptions<'_>,
    ) -> Result<(), EngineError> {
        let core = &*self.core;
        if let Err(error) = accesses.check(core) {
            drop_later(payload);
            return Err(error);
        }
        let pool = core.pool();
        let list = accesses.merged();
        let mut flags = OpFlags::default();
        if options.always_run {
            flags.set(OpFlags::ALWAYS_RUN);
        }
        if options.hands_on {
            flags.set(OpFlags::HANDS_ON);
        }
        let mut extra = None;
        if options.name.is_some() || options.bytes > 0 {
            let name = options.name.map(Into::into);
            extra = Some(Box::new(Extra { name, bytes: options.bytes, ..Extra::default() }));
        }
        let lane = match payload.queue() {
            None => pool.placement().lane(options.device),
            Some(queue) => pool.lane_of_queue(queue),
        };
        if options.priority != 0 {
            flags.set(OpFlags::PRIORITISED);
            pool.registrar.count_prioritised();
        }
        let mut refused = None;
        core.push_cell(list.len(), |cell, number| {
            // The ticket is taken: a close of the engine from here on waits for this op. From inside an op a push is
            // let through, so that drained ops can finish.
            let state = core.state();
            if state != 0 && core.is_closed() && current(pool.address()).is_none() {
                refused = Some(payload);
                // SAFETY: the cell is ours to fill. An op that does nothing takes the ticket.
                unsafe {
                    Op::fill(cell, OpKind::Fence, MaybeUninit::uninit(), &[], OpFlags::default(), 0, 0, None);
                }
                return;
            }
            for (node, kind) in list {
                if kind.makes_version() {
                    // SAFETY: the accesses borrow their variables.
                    unsafe { node.as_ref() }.count_version();
                }
            }
            if options.bytes > 0 {
                pool.registrar.hold_bytes(options.bytes);
            }
            if state != 0 {
                // SAFETY: the ticket is taken and not published, and the state was asked for since.
                unsafe { core.trace_push(state, kind_of::<P>(), number, list, options, lane, &mut flags) };
            }
            let payload = MaybeUninit::new(RawPayload::new(payload));
            // SAFETY: the cell is ours to fill.
            unsafe { Op::fill(cell, OpKind::Run, payload, list, flags, options.priority, lane, extra) };
        });
        if let Some(payload) = refused {
            if options.priority != 0 {
                pool.registrar.uncount_prioritised();
            }
            pool.turn().catch_up();
            drop_later(payload);
            return Err(core.closed_error());
        }
        pool.published(lane, P::HOSTED);
        Ok(())
    }

    /// Runs the enqueued ops, where the policy has no workers for that.
    #[inline]
    pub fn follow_up(&self) {
        let pool = self.core.pool();
        if pool.placement().is_inline() {
            pool.run_inline(false);
        }
    }

    /// Workers of a device that have nothing to do, while nothing is ready for them: an op that could be
    /// divided may give them a share. An estimate.
    #[must_use]
    pub fn idle_workers(&self, device: Device) -> usize {
        self.core.pool().idle_workers(device)
    }
}
