//! The binding of one push of a replay: the arguments of its steps, and the variables behind its ports.

use super::Call;
use crate::op::Op;
use crate::var::{AccessKind, AccessNode, VarNode};
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};
use std::sync::Arc;

/// Up to this many accesses, each is compared with each; more are sorted.
const FEW: usize = 16;

/// The bindings for the steps, of any type.
pub(crate) struct Bound {
    pub(super) pointer: *const (),
    drop: unsafe fn(*const ()),
}

impl Bound {
    pub(crate) fn new<B: Send + Sync + 'static>(bindings: Arc<B>) -> Self {
        let drop = |pointer: *const ()| {
            // SAFETY: called once, with the pointer that into_raw() answers.
            drop(unsafe { Arc::from_raw(pointer.cast::<B>()) });
        };
        Self { pointer: Arc::into_raw(bindings).cast(), drop }
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        // SAFETY: the pointer is the one that new() made, and goes once.
        unsafe { (self.drop)(self.pointer) };
    }
}

/// Two ports that cannot have the same variable behind them.
pub(crate) struct Clash {
    pub(crate) variable: NonNull<VarNode>,
    pub(crate) ports: (u32, u32),
}

impl Call {
    pub(crate) fn bind(&mut self, bindings: Bound) {
        // SAFETY: `&mut self`.
        self.bindings.with_mut(|place| unsafe { *place = Some(bindings) });
    }

    pub(super) fn take_bindings(&self) -> Option<Bound> {
        // SAFETY: called when all steps are done, by the thread that ends the call or gives it back.
        self.bindings.with_mut(|bindings| unsafe { (*bindings).take() })
    }

    /// The bindings for the steps.
    #[inline]
    pub(crate) fn bindings(&self) -> *const () {
        // SAFETY: they stay until all steps are done.
        self.bindings.with(|bindings| unsafe { (*bindings).as_ref() }.map_or(ptr::null(), |bound| bound.pointer))
    }

    /// Binds a variable to a port. A variable that is there already is answered if that cannot be.
    pub(crate) fn access(&mut self, port: u32, variable: NonNull<VarNode>, kind: AccessKind) -> Result<(), Clash> {
        if self.bound.len() < FEW
            && let Some(at) = self.bound.iter().position(|(other, _)| *other == variable)
        {
            let clash = self.clash(at, port, kind);
            if clash.is_some() {
                return clash.unwrap_or(Ok(()));
            }
        }
        let state = &mut self.ports[port as usize];
        #[allow(clippy::cast_possible_truncation)] // far fewer
        let index = self.bound.len() as u32;
        self.places.push((port, std::mem::replace(&mut state.first, index)));
        self.bound.push((variable, kind));
        Ok(())
    }

    /// The verdict on a variable that is bound already: nothing more to do, a mistake, or None if it may be bound
    /// again.
    fn clash(&self, at: usize, port: u32, kind: AccessKind) -> Option<Result<(), Clash>> {
        let (variable, before) = self.bound[at];
        let other = self.places[at].0;
        if other == port {
            return Some(Ok(()));
        }
        if kind.is_exclusive() || before.is_exclusive() {
            return Some(Err(Clash { variable, ports: (other, port) }));
        }
        None // it is read twice
    }

    /// Looks for variables behind two ports, where there are too many to have been compared.
    pub(crate) fn check(&mut self) -> Result<(), Clash> {
        if self.bound.len() <= FEW {
            return Ok(());
        }
        self.sorted.clear();
        self.sorted.extend((0..).zip(&self.bound).map(|(at, (variable, _))| (variable.as_ptr().addr(), at)));
        self.sorted.sort_unstable();
        for pair in self.sorted.windows(2) {
            let ((first, at), (second, later)) = (pair[0], pair[1]);
            if first == second {
                let (port, kind) = (self.places[later as usize].0, self.bound[later as usize].1);
                let other = self.places[at as usize].0;
                if kind.is_exclusive() || self.bound[at as usize].1.is_exclusive() {
                    return Err(Clash { variable: self.bound[at as usize].0, ports: (other, port) });
                }
            }
        }
        Ok(())
    }

    pub(crate) fn bound(&self) -> &[(NonNull<VarNode>, AccessKind)] {
        &self.bound
    }

    /// Room for as many accesses as are bound.
    pub(crate) fn make_room(&mut self) {
        if self.accesses.len() < self.bound.len() {
            self.accesses = (0..self.bound.len()).map(|_| MaybeUninit::uninit()).collect();
        }
    }

    /// Writes the accesses of its cell. Answers the first one and their number.
    pub(super) fn write_accesses(&mut self, op: *mut Op) -> (*mut AccessNode, usize) {
        self.op = op;
        for (place, &(variable, kind)) in self.accesses.iter_mut().zip(&self.bound) {
            place.write(AccessNode::new(variable, op, kind));
        }
        self.desk(|desk| {
            for &(port, _) in &self.places {
                desk.waiting[port as usize] += 1;
            }
        });
        (self.accesses.as_mut_ptr().cast(), self.bound.len())
    }
}
