//! Which instance of a replay goes to which call.

use super::instance::Instance;
use super::{Call, Plan};
use crate::sync::Ordering;
use crate::var::Seat;
use std::ptr;
use std::sync::Arc;

/// Which instances are free, and which calls wait for one.
pub(super) struct Slots {
    generation: u32,
    free: *mut Instance,
    extra: *mut Instance,
    first: *mut Call,
    last: *mut Call,
}

impl Slots {
    pub(super) const fn new(generation: u32) -> Self {
        let (free, extra) = (ptr::null_mut(), ptr::null_mut());
        Self { generation, free, extra, first: ptr::null_mut(), last: ptr::null_mut() }
    }

    /// Gives the first call that waits an instance, if one is free.
    unsafe fn serve(&mut self) -> *mut Call {
        let call = self.first;
        if call.is_null() || self.free.is_null() {
            return ptr::null_mut();
        }
        // SAFETY: calls that wait are pending, and the caller has the seat.
        unsafe {
            let instance = pop(&mut self.free);
            self.first = (*call).desk(|desk| {
                desk.instance = instance;
                desk.next
            });
        }
        call
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
        &self,
        _seat: &Seat,
        call: *mut Call,
        gift: *mut Instance,
        generation: u32,
    ) -> *mut Call {
        // SAFETY: the seat proves that nobody else is here; the call is pending, and so are those that wait.
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
            (*call).desk(|desk| desk.next = ptr::null_mut());
            if slots.first.is_null() {
                slots.first = call;
            } else {
                (*slots.last).desk(|desk| desk.next = call);
            }
            slots.last = call;
            slots.serve()
        })
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
    /// It is the seat's owner who calls, and the call that had it has ended.
    pub(crate) unsafe fn take_back(&self, _seat: &Seat, instance: *mut Instance, inside: bool) -> *mut Call {
        // SAFETY: as in assign().
        self.slots.with_mut(|slots| unsafe {
            let slots = &mut *slots;
            if inside {
                push(&mut slots.extra, instance);
                self.count_spare_extra(slots.generation);
                return ptr::null_mut();
            }
            push(&mut slots.free, instance);
            slots.serve()
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
        // SAFETY: what is in the list is free.
        *list = unsafe { (*first).next.with(|next| *next) };
    }
    first
}

impl Drop for Plan {
    fn drop(&mut self) {
        // SAFETY: `&mut self`: no call is pending, and no token is out.
        self.slots.with_mut(|slots| unsafe {
            for list in [(*slots).free, (*slots).extra] {
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
