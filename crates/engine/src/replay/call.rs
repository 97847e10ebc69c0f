//! One push of a replay: how far the engine has come with it.

use super::failures::FailedStack;
use super::{Bound, Instance, NONE, Plan};
use crate::failure::Failure;
use crate::op::{Op, OpPtr};
use crate::sync::{AtomicU32, Ordering, UnsafeCell};
use crate::var::{AccessKind, AccessNode, VarNode};
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};
use std::sync::Arc;

/// How a call ended, for the counts of the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
#[repr(u32)]
pub(crate) enum Ended {
    /// All its steps have run.
    #[default]
    Done,
    /// Steps were skipped for the failure of another op.
    Skipped,
    /// Steps were cancelled.
    Cancelled,
    /// A step failed.
    Failed,
}

/// The name to show of any op: the one it was given, or the number; of a push of a replay, the replay's.
///
/// # Safety
///
/// The op is pending, and stays so for the length of the call.
pub(crate) unsafe fn label(op: OpPtr) -> String {
    if !Op::is_replay(op) {
        // SAFETY: the caller's promise.
        return unsafe { Op::label(op) };
    }
    // SAFETY: as above.
    let (call, number) = unsafe { (&*Call::of(op.as_ptr()), (*op.as_ptr()).number) };
    match call.plan().name.as_deref() {
        Some(name) => format!("replay '{name}'"),
        None => format!("replay #{number}"),
    }
}

/// The fate of the memory behind a port.
#[derive(Debug, Clone, Default)]
pub(crate) enum Outcome {
    /// It is as good as it was, or as bad.
    #[default]
    Kept,
    /// It was overwritten.
    Overwritten,
    /// The last change of it failed.
    Failed {
        /// Of the step that failed first.
        failure: Arc<Failure>,
        /// Whether a step that ran has changed it: the value from before the call is gone.
        begun: bool,
    },
}

/// One port of a call.
pub(super) struct PortState {
    /// Its first access; [`NONE`] if nothing is bound to it.
    pub(super) first: u32,
    /// The next one in the list of ports that were granted, or are to be left.
    next: UnsafeCell<u32>,
    /// The value that its accesses see. Written by the registrar before it says that the port is granted.
    incoming: UnsafeCell<Option<Arc<Failure>>>,
    /// Its fate. Written by the instance's role before the port is left.
    outcome: UnsafeCell<Outcome>,
}

/// The registrar's notes on a call.
pub(crate) struct Desk {
    /// Where its steps run; null while it waits for one.
    pub(crate) instance: *mut Instance,
    /// Whether it is in the registrar's list of calls with news.
    pub(crate) listed: bool,
    /// Whether its instance was told of it.
    pub(crate) begun: bool,
    /// Place in that list, among those that wait for an instance, among spare calls.
    pub(crate) next: *mut Call,
    /// The one before it among those that wait for an instance.
    pub(super) previous: *mut Call,
    /// Ports granted that the instance was not told of.
    granted: u32,
    /// Accesses of each port that are not granted yet.
    pub(super) waiting: Box<[u32]>,
}

/// See the module.
pub(crate) struct Call {
    pub(super) plan: Option<Arc<Plan>>,
    /// Its cell.
    pub(crate) op: *mut Op,
    desk: UnsafeCell<Desk>,
    /// An instance that the push has made.
    pub(crate) gift: *mut Instance,
    /// Whether it was pushed inside an op.
    pub(crate) inside: bool,
    pub(crate) sequential: bool,
    /// Whether a trace has recorded the push.
    pub(crate) traced: bool,
    /// Bytes that it holds while it is pending.
    pub(crate) bytes: u64,
    /// How often the engine was forked before the push.
    pub(crate) generation: u32,
    pub(super) bindings: UnsafeCell<Option<Bound>>,
    /// The bindings of the ports: accesses, the port of each, the next one of the same port.
    pub(super) bound: Vec<(NonNull<VarNode>, AccessKind)>,
    pub(super) places: Vec<(u32, u32)>,
    pub(super) sorted: Vec<(usize, u32)>,
    pub(super) accesses: Box<[MaybeUninit<AccessNode>]>,
    pub(super) ports: Box<[PortState]>,
    /// Ports to be left; their number for the end.
    leaving: AtomicU32,
    /// The next one behind the end.
    after_end: UnsafeCell<u32>,
    pub(super) told: FailedStack,
    ended: AtomicU32,
    urgency: AtomicU32,
}

// SAFETY: each field has one owner at a time (see `replay`).
unsafe impl Send for Call {}
// SAFETY: as above.
unsafe impl Sync for Call {}

impl PortState {
    /// Puts a port into the list of those that were granted.
    fn put_granted(&self, port: u32, desk: &mut Desk) {
        let before = std::mem::replace(&mut desk.granted, port);
        // SAFETY: a port that is granted and not told is the registrar's.
        self.next.with_mut(|next| unsafe { *next = before });
    }
}

impl Call {
    fn new(ports: u32) -> Box<Self> {
        let port = |_| PortState {
            first: NONE,
            next: UnsafeCell::new(NONE),
            incoming: UnsafeCell::new(None),
            outcome: UnsafeCell::new(Outcome::Kept),
        };
        Box::new(Self {
            plan: None,
            op: ptr::null_mut(),
            desk: UnsafeCell::new(Desk {
                instance: ptr::null_mut(),
                listed: false,
                begun: false,
                next: ptr::null_mut(),
                previous: ptr::null_mut(),
                granted: NONE,
                waiting: (0..ports).map(|_| 0).collect(),
            }),
            gift: ptr::null_mut(),
            inside: false,
            sequential: false,
            traced: false,
            bytes: 0,
            generation: 0,
            bindings: UnsafeCell::new(None),
            bound: Vec::new(),
            places: Vec::new(),
            sorted: Vec::new(),
            accesses: Box::default(),
            ports: (0..ports).map(port).collect(),
            leaving: AtomicU32::new(NONE),
            after_end: UnsafeCell::new(NONE),
            told: FailedStack::new(),
            ended: AtomicU32::new(0),
            urgency: AtomicU32::new(0),
        })
    }

    /// A free call of this plan.
    pub(crate) fn take(plan: &Arc<Plan>) -> Box<Self> {
        let mut call = plan.spare.take().unwrap_or_else(|| Self::new(plan.port_count()));
        call.plan = Some(Arc::clone(plan));
        for port in &mut call.ports {
            port.first = NONE;
        }
        call.bound.clear();
        call.places.clear();
        call.desk(|desk| {
            (desk.listed, desk.begun, desk.granted, desk.instance) = (false, false, NONE, ptr::null_mut());
            desk.waiting.fill(0);
        });
        (call.traced, call.gift) = (false, ptr::null_mut());
        // ORDERING: the call is its pusher's; here and below.
        call.ended.store(0, Ordering::Relaxed);
        call
    }

    /// Gives it back to its plan, which may go with it.
    pub(crate) fn dispose(mut self: Box<Self>) {
        drop(self.take_bindings());
        if let Some(plan) = self.plan.take() {
            plan.spare.put(self);
        }
    }

    /// The call of a replay's cell.
    #[inline]
    pub(crate) fn of(op: *mut Op) -> *mut Self {
        // SAFETY: enter() has written it where other ops have their payload.
        unsafe { (*op).payload.as_ptr().cast::<*mut Self>().read() }
    }

    /// Goes into a cell that was filled.
    ///
    /// # Safety
    ///
    /// The cell is the caller's to fill, as a replay without accesses.
    pub(crate) unsafe fn enter(self: Box<Self>, op: *mut Op) {
        let call = Box::into_raw(self);
        // SAFETY: the caller's promise.
        unsafe {
            (*op).payload.as_mut_ptr().cast::<*mut Self>().write(call);
            let (first, count) = (*call).write_accesses(op);
            Op::lend(op, first, count);
        }
    }

    pub(crate) fn plan(&self) -> &Arc<Plan> {
        match &self.plan {
            Some(plan) => plan,
            None => unreachable!("a call in use has a plan"),
        }
    }

    /// The registrar's notes on it.
    ///
    /// Only the registrar calls it, or the owner of the call before it is published and after it has ended.
    #[inline]
    pub(crate) fn desk<R>(&self, f: impl FnOnce(&mut Desk) -> R) -> R {
        // SAFETY: one thread at a time has the registrar's role, or the call.
        self.desk.with_mut(|desk| f(unsafe { &mut *desk }))
    }

    /// Whether it waits for no access any more; the registrar's, once it is registered.
    pub(crate) fn has_all_accesses(&self) -> bool {
        // SAFETY: the registrar's, like the call; the cell is there as long as the call is.
        unsafe { (*self.op).countdown == 0 }
    }

    /// Whether it has no instance; the registrar's, as above.
    pub(crate) fn waits_for_instance(&self) -> bool {
        self.desk(|desk| desk.instance.is_null())
    }

    /// Ports that wait for nothing; asked once, by the registrar, when all accesses have entered.
    pub(crate) fn grant_free_ports(&self) {
        for (at, port) in (0..).zip(&self.ports).filter(|(_, port)| port.first == NONE) {
            self.desk(|desk| port.put_granted(at, desk));
        }
    }

    /// One of its accesses was granted, the registrar says. Answers whether a port is.
    #[inline]
    pub(crate) fn grant(&self, access: *mut AccessNode) -> bool {
        // SAFETY: it is one of this call's.
        let index = unsafe { access.offset_from(Op::accesses(self.op).0) };
        let port = self.places[index.cast_unsigned()].0;
        self.desk(|desk| {
            let waiting = &mut desk.waiting[port as usize];
            *waiting -= 1;
            let granted = *waiting == 0;
            if granted {
                self.ports[port as usize].put_granted(port, desk);
            }
            granted
        })
    }

    /// Takes a port that was granted; the registrar's.
    #[inline]
    pub(crate) fn take_granted(&self) -> Option<u32> {
        self.desk(|desk| {
            let port = desk.granted;
            if port == NONE {
                return None;
            }
            // SAFETY: a port that is granted and not told is the registrar's.
            desk.granted = self.ports[port as usize].next.with(|next| unsafe { *next });
            Some(port)
        })
    }

    /// The accesses of a port.
    pub(crate) fn accesses_of(&self, port: u32) -> impl Iterator<Item = *mut AccessNode> + '_ {
        let some = |at: u32| (at != NONE).then_some(at);
        let first = some(self.ports[port as usize].first);
        let (accesses, _) = Op::accesses(self.op);
        let indices = std::iter::successors(first, move |&at| some(self.places[at as usize].1));
        // SAFETY: there are as many.
        indices.map(move |at| unsafe { accesses.add(at as usize) })
    }

    /// States the value that a port's accesses see; the registrar does, before it tells the instance.
    pub(crate) fn set_incoming(&self, port: u32, failure: Arc<Failure>) {
        // SAFETY: it is not looked at before the instance is told.
        self.ports[port as usize].incoming.with_mut(|incoming| unsafe { *incoming = Some(failure) });
    }

    #[inline]
    pub(super) fn take_incoming(&self, port: u32) -> Option<Arc<Failure>> {
        // SAFETY: the instance was told, and looks once.
        self.ports[port as usize].incoming.with_mut(|incoming| unsafe { (*incoming).take() })
    }

    /// A port's last user is done, the instance's role says. Answers whether the call is to be put into the engine's inbox.
    #[inline]
    #[must_use]
    pub(super) fn leave(&self, port: u32, outcome: Outcome) -> bool {
        let state = &self.ports[port as usize];
        // SAFETY: it is not looked at before the port is in the list.
        state.outcome.with_mut(|place| unsafe { *place = outcome });
        self.put_leaving(port, &state.next)
    }

    /// All its nodes are done. The call may be gone after this, unless it is to be put into the engine's inbox, which is
    /// answered.
    #[must_use]
    pub(crate) fn end(&self) -> bool {
        drop(self.take_bindings());
        #[allow(clippy::cast_possible_truncation)] // few
        self.put_leaving(self.ports.len() as u32, &self.after_end)
    }

    #[inline]
    fn put_leaving(&self, what: u32, next: &UnsafeCell<u32>) -> bool {
        // ORDERING: a guess to start from.
        let mut head = self.leaving.load(Ordering::Relaxed);
        loop {
            // SAFETY: a port is left once, by the role's holder, and so is the end.
            next.with_mut(|next| unsafe { *next = head });
            // ORDERING: AcqRel: publishes the outcome; pairs with take_leaving().
            match self.leaving.compare_exchange(head, what, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return head == NONE,
                Err(now) => head = now,
            }
        }
    }

    /// Takes the first access to be left; the registrar's.
    pub(crate) fn take_leaving(&self) -> u32 {
        // ORDERING: pairs with put_leaving().
        self.leaving.swap(NONE, Ordering::AcqRel)
    }

    /// The one behind it, and the fate of the port; nothing if it is the end.
    pub(crate) fn left(&self, what: u32) -> (u32, Option<Outcome>) {
        match self.ports.get(what as usize) {
            // SAFETY: a taken one is the registrar's.
            None => (self.after_end.with(|next| unsafe { *next }), None),
            Some(port) => {
                // SAFETY: as above.
                let outcome = port.outcome.with_mut(|outcome| unsafe { std::mem::take(&mut *outcome) });
                // SAFETY: as above.
                (port.next.with(|next| unsafe { *next }), Some(outcome))
            }
        }
    }

    /// Notes its end, if that is worse than the known one. The instance's role.
    pub(super) fn note_ended(&self, ended: Ended) {
        // ORDERING: published by the end, here and below.
        let worst = self.ended.load(Ordering::Relaxed).max(ended as u32);
        self.ended.store(worst, Ordering::Relaxed);
    }

    pub(crate) fn ended(&self) -> Ended {
        // ORDERING: as above.
        match self.ended.load(Ordering::Relaxed) {
            0 => Ended::Done,
            1 => Ended::Skipped,
            2 => Ended::Cancelled,
            _ => Ended::Failed,
        }
    }

    /// Its priority, which may be lifted while it is pending.
    pub(crate) fn priority(&self) -> i32 {
        // ORDERING: a wish.
        self.urgency.load(Ordering::Relaxed).cast_signed()
    }

    pub(crate) fn set_priority(&self, priority: i32) {
        // ORDERING: a wish.
        self.urgency.store(priority.cast_unsigned(), Ordering::Relaxed);
    }
}
