//! The memory of an op.

use super::RawPayload;
use crate::failure::{Failure, Place};
use crate::sync::prefetch_to_write;
use crate::trace::Ran;
use crate::var::{AccessKind, AccessNode, VarNode};
use crate::waiter::Waiter;
use std::mem::{MaybeUninit, offset_of};
use std::ptr::{self, NonNull};
use std::sync::Arc;

/// Accesses that an op holds without a further allocation.
pub(crate) const INLINE_ACCESSES: usize = 4;

/// The kind of an op for the registrar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum OpKind {
    /// A user's op, which runs on a lane.
    Run,
    /// A wait: when granted it answers its waiter and is settled at once.
    Probe,
    /// Closes an epoch for `wait_for_all`.
    Fence,
    /// The last access of a variable without handles: frees the node.
    Release,
    /// A push of a replay: its accesses are granted and settled one by one; see `replay`.
    Replay,
    /// Work of a replay, in a cell of the replay's own: it is in a lane's queue or runs, and is never settled.
    Part,
}

/// Properties of an op, as bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct OpFlags(u8);

impl OpFlags {
    /// Runs even if its inputs have failed.
    pub(crate) const ALWAYS_RUN: Self = Self(1);
    /// Counts among the ops with a priority other than 0.
    pub(crate) const PRIORITISED: Self = Self(2);
    /// Lies in an ordered lane's list.
    pub(crate) const LISTED: Self = Self(4);
    /// Its push was recorded by a trace, which may be over.
    pub(crate) const TRACED: Self = Self(8);
    /// Its accesses lie in memory that is not its own.
    pub(crate) const BORROWED: Self = Self(16);
    /// Its pusher has written its priority and `extra`, which most are pushed without.
    const FURNISHED: Self = Self(32);
    /// Stands for what the ops on what it reads have written: their failure is told of it as it is told of them.
    pub(crate) const HANDS_ON: Self = Self(64);
    /// Has something to be done when it is settled that others have not.
    pub(crate) const SPECIAL: Self = Self(Self::PRIORITISED.0 | Self::TRACED.0);

    /// Whether it has this flag, or one of these.
    #[inline]
    pub(crate) const fn has(self, flag: Self) -> bool {
        self.0 & flag.0 != 0
    }

    #[inline]
    pub(crate) const fn set(&mut self, flag: Self) {
        self.0 |= flag.0;
    }

    #[inline]
    pub(crate) const fn clear(&mut self, flag: Self) {
        self.0 &= !flag.0;
    }
}

/// Fields that most ops do without, out of line.
#[derive(Default)]
pub(crate) struct Extra {
    pub(crate) name: Option<Box<str>>,
    /// Bytes this op holds while it is pending.
    pub(crate) bytes: u64,
    /// The waiter that a probe or a fence answers.
    pub(crate) waiter: Option<Arc<Waiter>>,
    /// The running op of a probe's waiter.
    pub(crate) asker: Option<OpPtr>,
}

/// An op. 192 bytes, three cache lines.
///
/// A pusher writes the first line alone if there is one access, the second one too for up to three. What is behind them
/// is the registrar's and the workers' own, and stays in their cache while cells go round: so a push costs as few lines
/// that travel between cores as it can. The countdown lies in the first line, beside the first access.
#[repr(C, align(64))]
pub(crate) struct Op {
    /// Accesses not granted yet.
    pub(crate) countdown: u32,
    /// How many accesses there are, or [`ELSEWHERE`].
    accesses: u8,
    /// Number of the lane it runs on.
    pub(crate) lane: u8,
    pub(crate) kind: OpKind,
    pub(crate) flags: OpFlags,
    pub(crate) payload: MaybeUninit<RawPayload>,
    inline: MaybeUninit<[AccessNode; INLINE_ACCESSES]>,
    /// Place in the list this op is in: ready, inbox, ordered lane, free.
    pub(crate) next: *mut Op,
    pub(crate) extra: Option<Box<Extra>>,
    /// How it failed, once it has.
    pub(crate) failure: Option<Arc<Failure>>,
    /// Number of the push in its engine; its low half.
    pub(crate) number: u32,
    pub(crate) epoch: u32,
    pub(crate) priority: i32,
    pub(crate) last: Last,
}

/// Of accesses that do not lie in the cell.
const ELSEWHERE: u8 = u8::MAX;

/// Where they lie, in the place of those that do.
#[derive(Clone, Copy)]
struct Elsewhere {
    first: *mut AccessNode,
    count: usize,
}

/// Bytes of a line, and the begin of the fields that no pusher touches.
const LINE: usize = 64;

/// Fields that an op needs at one time or the other.
#[derive(Clone, Copy)]
pub(crate) union Last {
    /// While it lies in an ordered lane's list.
    pub(crate) listed: Listed,
    /// Once it has run, if it is traced.
    pub(crate) ran: Ran,
}

#[derive(Clone, Copy)]
pub(crate) struct Listed {
    /// The op before.
    pub(crate) previous: *mut Op,
    /// Pops of the lane before it became ready; for ageing.
    pub(crate) ready_since: u32,
}

const _: () = assert!(size_of::<Op>() == 3 * LINE);
const _: () = assert!(offset_of!(Op, inline) + size_of::<AccessNode>() == LINE);
const _: () = assert!(offset_of!(Op, next) >= 2 * LINE);

/// A pointer to an op cell, and the right to use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct OpPtr(pub(crate) NonNull<Op>);

// SAFETY: a cell has one owner at a time (see the module's table), on any thread.
unsafe impl Send for OpPtr {}
// SAFETY: a shared pointer is no access; every dereference has its own reason.
unsafe impl Sync for OpPtr {}

impl OpPtr {
    #[inline]
    pub(crate) fn from_raw(op: *mut Op) -> Option<Self> {
        NonNull::new(op).map(Self)
    }

    #[inline]
    pub(crate) fn as_ptr(self) -> *mut Op {
        self.0.as_ptr()
    }
}

impl Op {
    /// Fills a supplied cell: the pusher's half of a new op. The registrar's is [`open`](Self::open).
    ///
    /// # Safety
    ///
    /// `cell` is this caller's to fill, and is not moved as long as the op lives. `payload` is
    /// initialised exactly if `kind` is `Run`.
    #[inline]
    #[allow(clippy::too_many_arguments)] // the fields, once
    pub(crate) unsafe fn fill(
        cell: *mut Op,
        kind: OpKind,
        payload: MaybeUninit<RawPayload>,
        accesses: &[(NonNull<VarNode>, AccessKind)],
        mut flags: OpFlags,
        priority: i32,
        lane: u16,
        extra: Option<Box<Extra>>,
    ) {
        let count = accesses.len();
        // SAFETY: the cell is the caller's; every field is written before anybody reads it, here or in open().
        unsafe {
            if extra.is_some() || priority != 0 {
                flags.set(OpFlags::FURNISHED);
                (&raw mut (*cell).priority).write(priority);
                (&raw mut (*cell).extra).write(extra);
            }
            debug_assert!(lane <= u8::MAX.into(), "lanes are few");
            #[allow(clippy::cast_possible_truncation)] // as it says
            (&raw mut (*cell).lane).write(lane as u8);
            (&raw mut (*cell).kind).write(kind);
            (&raw mut (*cell).flags).write(flags);
            (&raw mut (*cell).payload).write(payload);
            let mut at: *mut AccessNode = (&raw mut (*cell).inline).cast();
            if count > INLINE_ACCESSES {
                let heap = Box::<[AccessNode]>::new_uninit_slice(count);
                at = Box::into_raw(heap).cast();
            }
            Self::place_accesses(cell, at, count);
            for (index, &(var, kind)) in accesses.iter().enumerate() {
                at.add(index).write(AccessNode::new(var, cell, kind));
            }
        }
    }

    /// Asks for the lines of a cell that [`fill`](Self::fill) will write. Any address will do.
    #[inline]
    pub(crate) fn prefetch_to_fill(cell: *mut Op, accesses: usize) {
        let lines = cell.cast::<u8>();
        prefetch_to_write(lines);
        if accesses > 1 {
            prefetch_to_write(lines.wrapping_add(LINE));
        }
    }

    /// Asks for the lines of a cell that the registrar will look at. Any address will do.
    #[inline]
    pub(crate) fn prefetch_to_open(cell: *mut Op, accesses: usize) {
        Self::prefetch_to_fill(cell, accesses);
        prefetch_to_write(cell.cast::<u8>().wrapping_add(2 * LINE));
    }

    /// Writes the fields that a filled cell lacks of an op with this number.
    ///
    /// # Safety
    ///
    /// The cell was filled, is the caller's, and was not opened since.
    #[inline]
    pub(crate) unsafe fn open(cell: *mut Op, number: u64) {
        // SAFETY: the caller's promise; nothing is there yet that would have to be dropped.
        unsafe {
            if !(*cell).flags.has(OpFlags::FURNISHED) {
                (&raw mut (*cell).priority).write(0);
                (&raw mut (*cell).extra).write(None);
            }
            (&raw mut (*cell).countdown).write(0);
            (&raw mut (*cell).next).write(ptr::null_mut());
            (&raw mut (*cell).failure).write(None);
            #[allow(clippy::cast_possible_truncation)] // a label
            (&raw mut (*cell).number).write(number as u32);
            (&raw mut (*cell).epoch).write(0);
        }
    }

    /// Gives a filled cell without accesses those at `first`, which stay where they are until it is empty.
    ///
    /// # Safety
    ///
    /// The cell is the caller's, who has filled it; the accesses are its own, and as many.
    pub(crate) unsafe fn lend(cell: *mut Op, first: *mut AccessNode, count: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            if count > INLINE_ACCESSES {
                (*cell).flags.set(OpFlags::BORROWED);
            } else {
                ptr::copy_nonoverlapping(first, (&raw mut (*cell).inline).cast(), count);
            }
            Self::place_accesses(cell, first, count);
        }
    }

    /// Notes where the accesses lie, if not in the cell, and how many there are.
    ///
    /// # Safety
    ///
    /// The cell is the caller's to fill.
    #[inline]
    unsafe fn place_accesses(cell: *mut Op, first: *mut AccessNode, count: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            #[allow(clippy::cast_possible_truncation)] // few, if they lie in the cell
            let mut accesses = count as u8;
            if count > INLINE_ACCESSES {
                accesses = ELSEWHERE;
                (&raw mut (*cell).inline).cast::<Elsewhere>().write(Elsewhere { first, count });
            }
            (&raw mut (*cell).accesses).write(accesses);
        }
    }

    /// First access and number of accesses.
    #[inline]
    pub(crate) fn accesses(op: *mut Op) -> (*mut AccessNode, usize) {
        // SAFETY: called by the owner of a filled cell.
        unsafe {
            let inline: *mut AccessNode = (&raw mut (*op).inline).cast();
            if (*op).accesses == ELSEWHERE {
                let Elsewhere { first, count } = *inline.cast::<Elsewhere>();
                return (first, count);
            }
            (inline, (*op).accesses.into())
        }
    }

    /// Whether it is a push of a replay. Asked while it is pending.
    pub(crate) fn is_replay(op: OpPtr) -> bool {
        // SAFETY: the kind does not change while the op is pending.
        unsafe { (*op.as_ptr()).kind == OpKind::Replay }
    }

    /// Whether one of its accesses is of `var`.
    pub(crate) fn touches(op: *mut Op, var: NonNull<VarNode>) -> bool {
        let (first, count) = Self::accesses(op);
        // SAFETY: the op's accesses are as many, and live as long as it does.
        (0..count).any(|index| unsafe { (*first.add(index)).var == var })
    }

    /// The payload's word for the place of its push.
    ///
    /// # Safety
    ///
    /// The op is pending, and stays so for the length of the call. It is not about to be run, or is running.
    pub(crate) unsafe fn place(op: OpPtr) -> Place {
        // SAFETY: the caller's promise; what runs has been read out of its words, which nobody writes meanwhile.
        unsafe {
            if (*op.as_ptr()).kind != OpKind::Run {
                return Place::default();
            }
            (*op.as_ptr()).payload.assume_init_ref().place()
        }
    }

    /// Ends the life of a settled op; the cell is empty afterwards.
    ///
    /// # Safety
    ///
    /// The op is settled, its payload consumed, and the cell is not known elsewhere.
    #[inline]
    pub(crate) unsafe fn empty(op: *mut Op) {
        let (first, count) = Self::accesses(op);
        // SAFETY: the caller's promise.
        if count > INLINE_ACCESSES && !unsafe { (*op).flags }.has(OpFlags::BORROWED) {
            // SAFETY: fill() allocated a slice of this length.
            drop(unsafe {
                Box::from_raw(ptr::slice_from_raw_parts_mut(first.cast::<MaybeUninit<AccessNode>>(), count))
            });
        }
        // SAFETY: the caller's promise.
        unsafe { (*op).extra = None };
    }

    /// The name to show: the given one, or the number. That of a push of a replay is its replay's (`replay::label`).
    ///
    /// # Safety
    ///
    /// The op is pending, and stays so for the length of the call.
    pub(crate) unsafe fn label(op: OpPtr) -> String {
        // SAFETY: the caller's promise; neither field changes while the op is pending, and fields
        // that do (the priority, say) are not borrowed.
        let (extra, number) = unsafe { (&(*op.as_ptr()).extra, (*op.as_ptr()).number) };
        match extra.as_ref().and_then(|extra| extra.name.as_ref()) {
            Some(name) => format!("op '{name}'"),
            None => format!("op #{number}"),
        }
    }
}
