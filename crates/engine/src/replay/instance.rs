//! The changing state of a running call: its role, its events, its token.
//!
//! | `role` | who | does |
//! |---|---|---|
//! | free | anybody | takes it by one compare-exchange, or leaves an event and goes |
//! | held | the holder | counts down, takes what is ready, gives it back, looks for events once more |
//!
//! A holder that has found nothing to run, while others run steps, may *stay* for a while: it says so in the place of the
//! events, and looks there. A thread that replaces this by an event need not look at the role: the holder takes its word back by a
//! compare-exchange, which fails then. So counts stay in one core's cache; steps for others go by [`Handoff`], and those that come
//! back so end the stay, too.

use super::batch::{Batch, Wanted};
use super::failures::{Failed, FailedStack};
use super::handoff::Handoff;
use super::state::{State, Todo};
use super::{Call, NONE, Plan};
use crate::failure::{Cause, Failure};
use crate::op::{Extra, Op, OpContext, OpFlags, OpKind, OpPtr, Payload, RawPayload};
use crate::sync::{
    AtomicBool, AtomicPtr, AtomicU32, CachePadded, Ordering, UnsafeCell, full_fence_after_rmw, spin_hint,
};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Arc;

/// In the place of events: there are none, and the role's holder waits for some. No node has this number.
const STAYS: u32 = NONE - 1;
/// Looks at a held role, before finished steps are left as an event.
const TRIES: u32 = if cfg!(loom) { 1 } else { 64 };

/// A cell of an instance: of a step, or its token.
#[repr(C)]
pub(crate) struct Part {
    op: std::cell::UnsafeCell<Op>,
    instance: *const Instance,
    /// The step; [`NONE`] for the token.
    step: u32,
    /// The running call.
    call: std::cell::UnsafeCell<*const Call>,
}

/// Says where a part runs; it is not run as a payload.
struct Native;
struct Hosted;

impl Payload for Native {
    fn run(self, _: &mut OpContext<'_>) -> Result<(), Cause> {
        unreachable!("parts are run by their instance")
    }
}

impl Payload for Hosted {
    const HOSTED: bool = true;

    fn run(self, _: &mut OpContext<'_>) -> Result<(), Cause> {
        unreachable!("parts are run by their instance")
    }
}

impl Part {
    fn new(step: u32, lane: u16, hosted: bool, name: Option<String>) -> Self {
        let mut op = MaybeUninit::<Op>::uninit();
        let payload = if hosted { RawPayload::new(Hosted) } else { RawPayload::new(Native) };
        let extra = name.map(|name| Box::new(Extra { name: Some(name.into()), ..Extra::default() }));
        // SAFETY: the cell is ours to fill; it holds no pointers to itself as it has no accesses.
        let op = unsafe {
            let (kind, payload, flags) = (OpKind::Part, MaybeUninit::new(payload), OpFlags::default());
            Op::fill(op.as_mut_ptr(), kind, payload, &[], flags, 0, lane, extra);
            Op::open(op.as_mut_ptr(), 0);
            op.assume_init()
        };
        Self {
            op: std::cell::UnsafeCell::new(op),
            instance: ptr::null(),
            step,
            call: std::cell::UnsafeCell::new(ptr::null()),
        }
    }

    /// The part that a cell is.
    ///
    /// # Safety
    ///
    /// The cell's kind is [`OpKind::Part`], and the part lives.
    #[inline]
    #[allow(clippy::cast_ptr_alignment)] // the cell comes first
    pub(crate) unsafe fn of<'a>(op: OpPtr) -> &'a Self {
        // SAFETY: the caller's promise; `op` is the first field.
        unsafe { &*op.as_ptr().cast::<Self>() }
    }

    #[inline]
    pub(crate) fn op(&self) -> OpPtr {
        match OpPtr::from_raw(self.op.get()) {
            Some(op) => op,
            None => unreachable!("a cell has an address"),
        }
    }

    /// Where it belongs to.
    #[inline]
    pub(crate) fn instance(&self) -> &Instance {
        // SAFETY: it is a part of it.
        unsafe { &*self.instance }
    }

    /// The call of its step.
    #[inline]
    pub(crate) fn call(&self) -> &Call {
        // SAFETY: written before it was queued, and asked by its runner; the call is pending until its step is done.
        unsafe { &**self.call.get() }
    }

    /// Its step; none for a token.
    #[inline]
    pub(crate) fn step(&self) -> Option<u32> {
        (self.step != NONE).then_some(self.step)
    }
}

/// A node as an instance has it. The fields of counting lie side by side: large graphs are not in the cache.
pub(super) struct Node {
    /// The role's.
    pub(super) count: UnsafeCell<Count>,
    /// The next one in the list it is in: events, steps to be queued.
    pub(super) next: UnsafeCell<u32>,
}

/// How far a node has come.
pub(super) struct Count {
    /// Its countdown.
    pub(super) left: u32,
    /// Its countdown at the begin of each call.
    pub(super) all: u32,
    /// Where a step goes among ready ones.
    pub(super) rank: u32,
}

/// See the module.
pub(crate) struct Instance {
    plan: *const Plan,
    pub(crate) number: u32,
    role: CachePadded<AtomicBool>,
    /// Nodes that are done and not yet counted: a stack, taken whole.
    events: CachePadded<AtomicU32>,
    /// Steps done behind these without an event of their own.
    behind: AtomicU32,
    announced: AtomicBool,
    pub(super) handoff: CachePadded<Handoff>,
    failed: FailedStack,
    /// The call that begins, written before the event of its start.
    begins: AtomicPtr<Call>,
    pub(super) nodes: Box<[Node]>,
    state: UnsafeCell<State>,
    token: Part,
    cells: Box<[Part]>,
    /// Place in a list of free ones; the registrar's.
    pub(super) next: UnsafeCell<*mut Instance>,
}

// SAFETY: `state` is touched with the role alone, cells by their owners; the rest is Sync or does not change.
unsafe impl Sync for Instance {}
// SAFETY: as above.
unsafe impl Send for Instance {}

impl Instance {
    /// A free one, on the heap.
    pub(super) fn new(plan: &Arc<Plan>, number: u32) -> *mut Self {
        let token_name = plan.name.as_deref().map(|name| format!("token of {name}"));
        let instance = Box::into_raw(Box::new(Self {
            plan: Arc::as_ptr(plan),
            number,
            role: CachePadded(AtomicBool::new(false)),
            events: CachePadded(AtomicU32::new(NONE)),
            behind: AtomicU32::new(0),
            announced: AtomicBool::new(false),
            handoff: CachePadded(Handoff::new()),
            failed: FailedStack::new(),
            begins: AtomicPtr::new(ptr::null_mut()),
            nodes: plan
                .parallel
                .counts()
                .map(|count| Node { count: UnsafeCell::new(count), next: UnsafeCell::new(NONE) })
                .collect(),
            state: UnsafeCell::new(State::new(plan.step_count())),
            token: Part::new(NONE, plan.lane, false, token_name),
            cells: plan
                .celled
                .iter()
                .map(|cell| Part::new(cell.step, cell.lane, cell.hosted, Some(plan.name_of(cell.step))))
                .collect(),
            next: UnsafeCell::new(ptr::null_mut()),
        }));
        // SAFETY: it was just made.
        unsafe {
            (*instance).token.instance = instance;
            (*instance).cells.iter_mut().for_each(|part| part.instance = instance);
        }
        instance
    }

    #[inline]
    pub(crate) fn plan(&self) -> &Plan {
        // SAFETY: a plan outlives its instances.
        unsafe { &*self.plan }
    }

    /// Keeps the plan, and so the instance, until [`release`](Self::release).
    #[inline]
    pub(crate) fn retain(&self) {
        // SAFETY: the pointer is that of an Arc, which the caller's call or token holds.
        unsafe { Arc::increment_strong_count(self.plan) };
    }

    /// Ends what [`retain`](Self::retain) has begun. The instance may go with it.
    ///
    /// # Safety
    ///
    /// The caller has retained it, and has no reference to it any more.
    #[inline]
    pub(crate) unsafe fn release(this: *const Self) {
        // SAFETY: the caller's promise.
        unsafe { Arc::decrement_strong_count((*this).plan) };
    }

    #[inline]
    pub(crate) fn token(&self) -> OpPtr {
        self.token.op()
    }

    /// Makes the cell of a step ready to be queued. Answers it, and the next step in the list.
    pub(crate) fn prepare_cell(&self, step: u32, todo: &Todo) -> (OpPtr, u32) {
        let part = &self.cells[self.plan().cell_of[step as usize] as usize];
        let op = part.op();
        // SAFETY: a step that is to be queued is the caller's, and its call is pending.
        unsafe {
            (*op.as_ptr()).number = (*(*todo.call).op).number;
            (*op.as_ptr()).epoch = step; // its place among those of this number
            (*op.as_ptr()).priority = (*todo.call).priority().saturating_add(self.plan().priority_of(step));
            *part.call.get() = todo.call;
        }
        // SAFETY: as above.
        (op, self.nodes[step as usize].next.with(|next| unsafe { *next }))
    }

    /// Takes the right to put the token into a queue; it holds the plan.
    #[inline]
    #[must_use]
    pub(crate) fn announce(&self) -> bool {
        // ORDERING: SeqCst: the look behind an event, or behind a role given back; pairs with pulled(). The swap
        // publishes the token's content to its puller.
        let first = !self.announced.load(Ordering::SeqCst) && !self.announced.swap(true, Ordering::SeqCst);
        if first {
            self.retain();
        }
        first
    }

    /// The token was pulled. The caller looks for events next, and releases the instance in the end.
    #[inline]
    pub(crate) fn pulled(&self) {
        // ORDERING: SeqCst: comes before the look at the role; pairs with announce() and give_back().
        self.announced.swap(false, Ordering::SeqCst);
        full_fence_after_rmw();
    }

    /// Says that a call begins. The registrar's, before it says that its ports are granted.
    pub(crate) fn begin(&self, call: *mut Call) {
        // ORDERING: published by the event.
        self.begins.store(call, Ordering::Relaxed);
        self.post(self.plan().start());
    }

    /// Says that a port is granted. The registrar's.
    #[inline]
    pub(crate) fn port_granted(&self, port: u32) {
        self.post(self.plan().step_count() + port);
    }

    pub(super) fn call_that_begins(&self) -> *mut Call {
        // ORDERING: published by the event.
        self.begins.load(Ordering::Relaxed)
    }

    /// Leaves an event. The caller tries to take the role next, or has announced the token.
    fn post(&self, node: u32) {
        self.post_all(node, node);
    }

    /// Leaves events, linked from the first one to the last one. Answers whether the role's holder stays, and looks at them;
    /// otherwise as [`post`](Self::post).
    fn post_all(&self, first: u32, last: u32) -> bool {
        // ORDERING: a guess to start from.
        let mut head = self.events.0.load(Ordering::Relaxed);
        loop {
            let behind = if head == STAYS { NONE } else { head };
            // SAFETY: a node that is done is its finisher's until it is an event.
            self.nodes[last as usize].next.with_mut(|next| unsafe { *next = behind });
            // ORDERING: SeqCst on success: publishes the writes of the node's finisher, and is its half of the
            // handshake with the role.
            match self.events.0.compare_exchange(head, first, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => break,
                Err(now) => head = now,
            }
        }
        full_fence_after_rmw();
        head == STAYS
    }

    /// Leaves the steps of a batch as events. Answers whether the role's holder stays, and looks at them.
    fn post_batch(&self, batch: &mut Batch) -> bool {
        let behind = batch.take_behind();
        if behind > 0 {
            // ORDERING: published by the events that follow.
            self.behind.fetch_add(behind, Ordering::Relaxed);
        }
        let (mut first, mut last) = (NONE, NONE);
        batch.take_done(|step| {
            // SAFETY: a node that is done is its finisher's until it is an event.
            self.nodes[step as usize].next.with_mut(|next| unsafe { *next = first });
            (first, last) = (step, if last == NONE { step } else { last });
        });
        self.post_all(first, last)
    }

    /// Has the role's holder wait for events, or steps that are handed back, while `waits` says so. Answers whether there are some.
    #[inline(never)] // out of the way
    fn stay(&self, waits: &mut dyn FnMut() -> bool) -> bool {
        // ORDERING: for those who have events; who takes them looks at them.
        let stays = self.events.0.compare_exchange(NONE, STAYS, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        // ORDERING: as above.
        while stays && self.events.0.load(Ordering::Relaxed) == STAYS && self.handoff.done(0) == 0 && waits() {
            spin_hint();
        }
        // ORDERING: as above.
        let interrupted =
            !stays || self.events.0.compare_exchange(STAYS, NONE, Ordering::Relaxed, Ordering::Relaxed).is_err();
        interrupted || self.handoff.done(0) != 0
    }

    #[inline]
    fn holder_stays(&self) -> bool {
        // ORDERING: SeqCst: the look behind a pulled token, as in take_events(): an event whose poster has found the token announced
        // is seen here, or its poster sees that it is not.
        self.events.0.load(Ordering::SeqCst) == STAYS
    }

    #[inline]
    fn has_events(&self) -> bool {
        // ORDERING: SeqCst: the load behind a role given back; pairs with post() and pulled().
        self.events.0.load(Ordering::SeqCst) != NONE
    }

    /// Takes the events, the last one first.
    #[inline]
    pub(super) fn take_events(&self) -> u32 {
        // ORDERING: SeqCst: the look behind a pulled token: its poster may have found it announced still; pairs with
        // post(). A guess that spares the swap.
        if self.events.0.load(Ordering::SeqCst) == NONE {
            return NONE;
        }
        // ORDERING: pairs with post().
        self.events.0.swap(NONE, Ordering::AcqRel)
    }

    /// Steps that were done without an event of their own before events that were taken.
    #[inline]
    pub(super) fn take_behind(&self) -> u32 {
        // ORDERING: published by the events.
        self.behind.swap(0, Ordering::Relaxed)
    }

    /// Notes that a step failed; its finisher does, before it says that it is done.
    pub(crate) fn fail(&self, step: u32, failure: Arc<Failure>) {
        self.failed.put(Box::new(Failed::new(step, failure)));
    }

    pub(super) fn take_failed(&self, each: impl FnMut(Box<Failed>)) {
        self.failed.take(each);
    }

    #[inline]
    fn try_role(&self) -> bool {
        for look in 0..TRIES {
            if look > 0 {
                if self.holder_stays() {
                    return false;
                }
                spin_hint();
            }
            // ORDERING: SeqCst: comes behind an event, or a pulled token; see give_back().
            if !self.role.load(Ordering::SeqCst)
                // ORDERING: SeqCst: Acquire of the last holder's writes.
                && self.role.compare_exchange(false, true, Ordering::SeqCst, Ordering::SeqCst).is_ok()
            {
                return true;
            }
        }
        false
    }

    #[inline]
    fn give_back(&self) {
        // ORDERING: SeqCst: Release of our writes, and the holder's half of the handshake: it comes before the next look
        // at the events.
        self.role.swap(false, Ordering::SeqCst);
        full_fence_after_rmw();
    }

    /// Counts finished steps, `batch` included, and hands out ready ones: steps to be run into `batch`, as `wanted`, the
    /// rest into the answer. If the role is not free, its holder does it. With nothing to run the caller stays for more while
    /// `stays` says so.
    ///
    /// The caller holds the plan.
    #[inline]
    pub(crate) fn attend(
        &self,
        batch: &mut Batch,
        wanted: Wanted,
        cancelling: bool,
        stays: &mut dyn FnMut() -> bool,
    ) -> Todo {
        let mut todo = Todo::new();
        loop {
            if self.holder_stays() || !self.try_role() {
                if !batch.is_done() || self.post_batch(batch) {
                    return todo;
                }
                continue; // the holder may have looked before: try once more, now that it is visible
            }
            loop {
                // SAFETY: the role is ours.
                let may_stay =
                    self.state.with_mut(|state| unsafe { (*state).turn(self, batch, wanted, cancelling, &mut todo) });
                if !(may_stay && batch.is_empty() && todo.is_empty() && self.stay(stays)) {
                    break;
                }
            }
            self.give_back();
            if !self.has_events() {
                return todo;
            }
        }
    }

    /// Runs steps that the role's holder hands over, by `run`, while `waits` says that the caller looks for some. `run` answers how often
    /// to look for the holder before the caller counts a batch itself, or nothing if it has something else to do. With no place free
    /// nothing is run. Steps that are in the batch afterwards were run, and are to be counted. The caller holds the plan.
    pub(crate) fn run_handed<W: FnMut() -> bool>(
        &self,
        batch: &mut Batch,
        mut waits: impl FnMut() -> W,
        mut run: impl FnMut(&mut Batch) -> Option<u32>,
    ) {
        let Some(at) = self.handoff.enter() else { return };
        let mut comes = 0;
        while self.handoff.look(at, batch, comes, waits()) {
            let looks = run(batch);
            // SAFETY: they were given to this caller, who has the place.
            unsafe {
                match looks {
                    None => return self.handoff.leave(at),
                    Some(looks) => comes = looks,
                }
                self.handoff.hand_back(at, batch);
            }
        }
    }

    /// Whether the token is in a queue, or on its way there: a guess.
    #[inline]
    pub(super) fn is_announced(&self) -> bool {
        // ORDERING: as said.
        self.announced.load(Ordering::Relaxed)
    }

    /// A step with a cell is done.
    pub(crate) fn finished(&self, step: u32) {
        self.post(step);
    }
}
