//! One op's claim on one variable.

use super::VarNode;
use std::ptr::{self, NonNull};

/// How an op touches a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum AccessKind {
    /// Sees the value and leaves it; many at the same time.
    Read = 0,
    /// Sees the value and makes the next version; alone.
    Mutate = 1,
    /// Makes the next version without seeing the value; alone.
    Overwrite = 2,
    /// Alone, but makes no version: deletion and the wait for exclusive access.
    #[doc(hidden)]
    Exclusive = 3,
}

impl AccessKind {
    /// Whether the access is granted to one op at a time.
    #[inline]
    #[must_use]
    pub const fn is_exclusive(self) -> bool {
        !matches!(self, Self::Read)
    }

    /// Whether the access makes a new version.
    #[inline]
    #[must_use]
    pub const fn makes_version(self) -> bool {
        matches!(self, Self::Mutate | Self::Overwrite)
    }

    /// Whether the op sees the value of earlier ops, and so inherits their failure.
    #[inline]
    #[must_use]
    pub const fn sees_value(self) -> bool {
        matches!(self, Self::Read | Self::Mutate)
    }

    /// One access that stands for two by the same op on the same variable.
    #[inline]
    #[must_use]
    pub const fn merged(self, other: Self) -> Self {
        match (self, other) {
            (Self::Read, Self::Read) => Self::Read,
            (Self::Overwrite, Self::Overwrite) => Self::Overwrite,
            (Self::Exclusive, other) | (other, Self::Exclusive) => other,
            _ => Self::Mutate,
        }
    }

    pub(crate) const fn from_bits(bits: usize) -> Self {
        match bits {
            0 => Self::Read,
            1 => Self::Mutate,
            2 => Self::Overwrite,
            _ => Self::Exclusive,
        }
    }
}

/// The node of an access in its variable's queue. It lives in its op.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AccessNode {
    /// The variable. It outlives the access: its node goes with its own last access.
    pub(crate) var: NonNull<VarNode>,
    /// The next access in the queue, while this one waits.
    pub(crate) next: *mut AccessNode,
    /// The owning op; its alignment leaves two bits for the kind.
    owner_and_kind: *mut u8,
}

const KIND_BITS: usize = 0b11;

impl AccessNode {
    /// An access of `owner`, which is aligned to four bytes or more.
    #[inline]
    pub(crate) fn new<T>(var: NonNull<VarNode>, owner: *mut T, kind: AccessKind) -> Self {
        const { assert!(align_of::<T>() > KIND_BITS) };
        Self { var, next: ptr::null_mut(), owner_and_kind: owner.cast::<u8>().wrapping_add(kind as usize) }
    }

    #[inline]
    pub(crate) fn kind(&self) -> AccessKind {
        AccessKind::from_bits(self.owner_and_kind.addr() & KIND_BITS)
    }

    #[inline]
    pub(crate) fn owner<T>(&self) -> *mut T {
        self.owner_and_kind.map_addr(|address| address & !KIND_BITS).cast()
    }

    /// Notes that it has left its variable before its op ends. The variable is not looked at any more, and may be gone.
    pub(crate) fn mark_left(access: *mut Self) {
        // SAFETY: the caller is the registrar, and so has all accesses. A granted one is in no queue.
        unsafe { (*access).next = access };
    }

    /// Whether it has left before its op ends.
    pub(crate) fn has_left(access: *mut Self) -> bool {
        // SAFETY: as above; a queued access is never its own next one.
        unsafe { (*access).next == access }
    }

    /// The variable's node.
    #[inline]
    pub(crate) fn var(&self) -> &VarNode {
        // SAFETY: a variable's node is freed by its last access, which comes after this one.
        unsafe { self.var.as_ref() }
    }
}
