//! The assignment of a replay's instances to calls.
//!
//! | call | waits for | leaves the list when |
//! |---|---|---|
//! | blocked | accesses, and an instance: in the order of tickets | its last access is granted, or it gets an instance |
//! | ready | an instance alone: the more urgent first, then by when it became so | it gets an instance |
//! | holder | accesses, or the end of its steps | it has ended |
//!
//! | instances | how many | go to |
//! |---|---|---|
//! | usual | the replay's limit | the first ready call, or else the first blocked one, whose steps then begin as ports are granted |
//! | reserve | one in use | the first ready call, if no holder has all its accesses |
//! | further | as many as it takes | calls for which a wait inside an op would wait for ever; of those pushed inside ops, each |
//!
//! Invariant: if a call is ready, some holder has all its accesses. Such a one ends by its steps alone, so no call
//! waits for an instance because others wait for accesses. A step's own wait, in a holder, is seen by the walk that
//! each wait inside an op makes (`sched::walk`): to it the calls in both lists are behind the holders.

use super::instance::Instance;
use super::{Call, Plan};
use crate::sync::Ordering;
use crate::var::Seat;
use std::ptr;
use std::sync::Arc;

/// Which instances are free, which calls have one, and which wait for one.
pub(super) struct Slots {
    generation: u32,
    free: *mut Instance,
    extra: *mut Instance,
    reserve: *mut Instance,
    blocked: Line,
    ready: Line,
    holders: Vec<*mut Call>,
}

/// Calls that wait for an instance.
struct Line {
    first: *mut Call,
    last: *mut Call,
}

impl Line {
    const fn new() -> Self {
        Self { first: ptr::null_mut(), last: ptr::null_mut() }
    }

    /// Puts a call behind all that are as urgent.
    unsafe fn put(&mut self, call: *mut Call) {
        // SAFETY: the caller's: pending calls, linked if they are in this list; the caller has the seat.
        unsafe {
            let mut before = self.last;
            while !before.is_null() && (*before).priority() < (*call).priority() {
                before = (*before).desk(|desk| desk.previous);
            }
            self.put_behind(before, call);
        }
    }

    unsafe fn put_behind(&mut self, before: *mut Call, call: *mut Call) {
        // SAFETY: as above.
        unsafe {
            let after = if before.is_null() {
                self.first
            } else {
                (*before).desk(|desk| std::mem::replace(&mut desk.next, call))
            };
            (*call).desk(|desk| (desk.previous, desk.next) = (before, after));
            if before.is_null() {
                self.first = call;
            }
            match after.as_ref() {
                None => self.last = call,
                Some(after) => after.desk(|desk| desk.previous = call),
            }
        }
    }

    unsafe fn take_out(&mut self, call: *mut Call) {
        // SAFETY: as above; the call is in the list.
        unsafe {
            let (before, after) =
                (*call).desk(|desk| (std::mem::take(&mut desk.previous), std::mem::take(&mut desk.next)));
            match before.as_ref() {
                None => self.first = after,
                Some(before) => before.desk(|desk| desk.next = after),
            }
            match after.as_ref() {
                None => self.last = before,
                Some(after) => after.desk(|desk| desk.previous = before),
            }
        }
    }

    fn calls(&self) -> impl Iterator<Item = *mut Call> {
        let some = |call: *mut Call| (!call.is_null()).then_some(call);
        // SAFETY: calls that wait are pending, and the caller has the seat.
        std::iter::successors(some(self.first), move |&call| some(unsafe { (*call).desk(|desk| desk.next) }))
    }
}

impl Slots {
    pub(super) const fn new(generation: u32) -> Self {
        let (free, extra, reserve) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        Self { generation, free, extra, reserve, blocked: Line::new(), ready: Line::new(), holders: Vec::new() }
    }

    /// Takes in a call that waits for an instance.
    unsafe fn queue(&mut self, call: *mut Call) {
        // SAFETY: the caller's: a pending call; the caller has the seat.
        unsafe {
            if (*call).has_all_accesses() {
                self.ready.put(call);
            } else {
                self.blocked.put_behind(self.blocked.last, call);
            }
        }
    }

    /// Gives this call an instance.
    unsafe fn give(&mut self, call: *mut Call, instance: *mut Instance) {
        // SAFETY: the caller's: a call that waits, and a free instance.
        unsafe {
            let line = if (*call).has_all_accesses() { &mut self.ready } else { &mut self.blocked };
            line.take_out(call);
            (*call).desk(|desk| desk.instance = instance);
        }
        self.holders.push(call);
    }

    /// Gives a call that waits an instance, if there is one for it. Answers it.
    unsafe fn serve(&mut self, plan: &Arc<Plan>) -> *mut Call {
        let ready = self.ready.first;
        // SAFETY: calls that wait, and those that hold, are pending, and the caller has the seat.
        unsafe {
            if !self.free.is_null() {
                let call = if ready.is_null() { self.blocked.first } else { ready };
                if !call.is_null() {
                    let instance = pop(&mut self.free);
                    self.give(call, instance);
                }
                return call;
            }
            if ready.is_null() || self.holders.iter().any(|&call| (*call).has_all_accesses()) {
                return ptr::null_mut();
            }
            let instance = plan.take_reserve(&mut self.reserve);
            self.give(ready, instance);
        }
        ready
    }
}

#[allow(clippy::cast_possible_truncation)] // halves of words
impl Plan {
    /// A new instance, for a push that will need one that is not there: the engine's generation, and whether it is
    /// pushed from inside an op.
    pub(crate) fn supply(self: &Arc<Self>, generation: u32, inside: bool) -> *mut Instance {
        if inside {
            // ORDERING: a count; the registrar puts an instance into its list before it counts it here.
            let mut spare = self.spare_extras.load(Ordering::Acquire);
            while (spare >> 32) as u32 == generation && spare as u32 > 0 {
                // ORDERING: as above.
                match self.spare_extras.compare_exchange(spare, spare - 1, Ordering::AcqRel, Ordering::Acquire) {
                    Ok(_) => return ptr::null_mut(),
                    Err(now) => spare = now,
                }
            }
            // ORDERING: a number of its own.
            let number = self.limit + self.extras.fetch_add(1, Ordering::Relaxed);
            return Instance::new(self, number);
        }
        // ORDERING: a number of its own for each instance, here and below.
        let mut made = self.made.load(Ordering::Relaxed);
        loop {
            let number = if (made >> 32) as u32 == generation { made as u32 } else { 0 };
            if number >= self.limit {
                return ptr::null_mut();
            }
            let next = u64::from(generation) << 32 | u64::from(number + 1);
            match self.made.compare_exchange(made, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Instance::new(self, number),
                Err(now) => made = now,
            }
        }
    }

    /// Takes a registered call in, with the instance that its push has brought. Answers a call that has an instance from
    /// now on: this one, or one that has waited.
    ///
    /// # Safety
    ///
    /// The call is being registered, by the seat's owner.
    pub(crate) unsafe fn assign(
        self: &Arc<Self>,
        _seat: &Seat,
        call: *mut Call,
        gift: *mut Instance,
        generation: u32,
    ) -> *mut Call {
        // SAFETY: the seat proves that no other thread is here; the call is pending, and so are those that wait.
        self.slots.with_mut(|slots| unsafe {
            let slots = &mut *slots;
            if slots.generation != generation {
                *slots = Slots::new(generation); // what was there stayed in the parent
            }
            if (*call).inside {
                let instance = if gift.is_null() { pop(&mut slots.extra) } else { gift };
                (*call).desk(|desk| desk.instance = instance);
                return call;
            }
            push(&mut slots.free, gift);
            slots.queue(call);
            slots.serve(self)
        })
    }

    /// A call has got the last of its accesses. Answers a call that has an instance from now on.
    ///
    /// # Safety
    ///
    /// The caller owns the seat, and the call is registered.
    pub(crate) unsafe fn has_become_ready(self: &Arc<Self>, call: *mut Call) -> *mut Call {
        // SAFETY: as in assign().
        self.slots.with_mut(|slots| unsafe {
            let slots = &mut *slots;
            slots.blocked.take_out(call);
            slots.ready.put(call);
            slots.serve(self)
        })
    }

    /// A call that waits for an instance has become more urgent.
    ///
    /// # Safety
    ///
    /// As for [`has_become_ready`](Self::has_become_ready).
    pub(crate) unsafe fn has_become_urgent(&self, call: *mut Call) {
        // SAFETY: as in assign().
        self.slots.with_mut(|slots| unsafe {
            if (*call).has_all_accesses() {
                (*slots).ready.take_out(call);
                (*slots).ready.put(call);
            }
        });
    }

    /// Gives a call an instance beyond the usual ones.
    ///
    /// # Safety
    ///
    /// As for [`has_become_ready`](Self::has_become_ready); the call waits for an instance.
    pub(crate) unsafe fn give_further(self: &Arc<Self>, call: *mut Call) {
        // SAFETY: as in assign().
        self.slots.with_mut(|slots| unsafe {
            let instance = self.take_reserve(&mut (*slots).reserve);
            (*slots).give(call, instance);
        });
    }

    /// The calls that have an instance, or those that wait for one.
    pub(crate) fn calls(&self, _seat: &Seat, waiting: bool) -> Vec<*mut Call> {
        // SAFETY: the seat proves that no other thread is here.
        self.slots.with(|slots| unsafe {
            let slots = &*slots;
            if waiting { slots.blocked.calls().chain(slots.ready.calls()).collect() } else { slots.holders.clone() }
        })
    }

    /// An instance beyond the usual ones.
    unsafe fn take_reserve(self: &Arc<Self>, reserve: &mut *mut Instance) -> *mut Instance {
        // SAFETY: the caller has the seat.
        let kept = unsafe { pop(reserve) };
        if !kept.is_null() {
            return kept;
        }
        // ORDERING: a number of its own.
        Instance::new(self, self.limit + self.extras.fetch_add(1, Ordering::Relaxed))
    }

    /// How many instances were made: of the usual ones, and of the others.
    #[cfg(all(test, loom))]
    pub(crate) fn instances_made(&self) -> (u32, u32) {
        // ORDERING: all threads have ended.
        (self.made.load(Ordering::Relaxed) as u32, self.extras.load(Ordering::Relaxed))
    }

    /// Says that there is one more instance for a call inside an op.
    fn count_spare_extra(&self, generation: u32) {
        let none = u64::from(generation) << 32;
        // ORDERING: see supply(), here and below.
        let mut spare = self.spare_extras.load(Ordering::Relaxed);
        loop {
            let next = if spare >> 32 == none >> 32 { spare + 1 } else { none + 1 };
            match self.spare_extras.compare_exchange(spare, next, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => spare = now,
            }
        }
    }

    /// Takes an instance back. Answers the call that has it next.
    ///
    /// # Safety
    ///
    /// The caller owns the seat, and the call that had it has ended, or was refused.
    pub(crate) unsafe fn take_back(self: &Arc<Self>, _seat: &Seat, instance: *mut Instance, call: &Call) -> *mut Call {
        // SAFETY: as in assign().
        self.slots.with_mut(|slots| unsafe {
            let slots = &mut *slots;
            if slots.generation != call.generation {
                *slots = Slots::new(call.generation); // a push was refused before any other one of this process
            }
            if call.inside {
                push(&mut slots.extra, instance);
                self.count_spare_extra(slots.generation);
                return ptr::null_mut();
            }
            slots.holders.retain(|&holder| !ptr::eq(holder, call));
            let usual = (*instance).number < self.limit;
            push(if usual { &mut slots.free } else { &mut slots.reserve }, instance);
            slots.serve(self)
        })
    }
}

unsafe fn push(list: &mut *mut Instance, instance: *mut Instance) {
    if !instance.is_null() {
        // SAFETY: the caller's: a free instance.
        unsafe { (*instance).next.with_mut(|next| *next = *list) };
        *list = instance;
    }
}

unsafe fn pop(list: &mut *mut Instance) -> *mut Instance {
    let first = *list;
    if !first.is_null() {
        // SAFETY: members of the list are free.
        *list = unsafe { (*first).next.with(|next| *next) };
    }
    first
}

impl Drop for Plan {
    fn drop(&mut self) {
        // SAFETY: `&mut self`: no call is pending, and no token is out.
        self.slots.with_mut(|slots| unsafe {
            for list in [(*slots).free, (*slots).extra, (*slots).reserve] {
                let mut at = list;
                while !at.is_null() {
                    let next = (*at).next.with(|next| *next);
                    drop(Box::from_raw(at));
                    at = next;
                }
            }
        });
    }
}
