//! Objects whose last user may be a thread that is not attached.
//!
//! `PyO3` puts the decref of such a drop into a list, which it locks. A fork at that moment would leave the list locked in
//! the child for good, and the next thread that attaches there would wait for it: so these drops and forks exclude each other.

use pyo3::prelude::*;
use std::ffi::c_int;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::{OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Drops read it for the moment that one takes, the forking thread writes it.
static FORKS: RwLock<()> = RwLock::new(());

type IsAttached = extern "C" fn() -> c_int;

/// `PyGILState_Check`, which tells whether the calling thread is attached; None where nothing forks.
///
/// It is public, but not in the part of the interface that is the same in all versions: so it is looked up.
static IS_ATTACHED: OnceLock<Option<IsAttached>> = OnceLock::new();

/// Looks the function up; called when the extension is imported.
pub(crate) fn load(_: Python<'_>) {
    IS_ATTACHED.get_or_init(find);
}

#[cfg(unix)]
fn find() -> Option<IsAttached> {
    // SAFETY: the function is as C declares it, and the interpreter is never unloaded.
    unsafe { libloading::os::unix::Library::this().get::<IsAttached>("PyGILState_Check").ok().map(|found| *found) }
}

#[cfg(not(unix))]
fn find() -> Option<IsAttached> {
    None
}

/// No drop of a [`Loose`] object is under way on a thread that is not attached, and none begins.
pub(crate) struct NoDrops(#[expect(dead_code, reason = "held")] RwLockWriteGuard<'static, ()>);

impl NoDrops {
    /// Waits for those under way, which wait for nothing. Its end, in the parent and in the child, ends it.
    pub(crate) fn begin() -> Self {
        Self(FORKS.write().unwrap_or_else(PoisonError::into_inner))
    }
}

/// An object that the core keeps, and drops wherever it is done with it.
pub(crate) struct Loose<T>(ManuallyDrop<Py<T>>);

impl<T> Loose<T> {
    #[inline]
    pub(crate) fn into_inner(self) -> Py<T> {
        let mut kept = ManuallyDrop::new(self);
        // SAFETY: taken once, as `self` is not dropped.
        unsafe { ManuallyDrop::take(&mut kept.0) }
    }
}

impl<T> From<Py<T>> for Loose<T> {
    #[inline]
    fn from(object: Py<T>) -> Self {
        Self(ManuallyDrop::new(object))
    }
}

impl<T> Deref for Loose<T> {
    type Target = Py<T>;

    #[inline]
    fn deref(&self) -> &Py<T> {
        &self.0
    }
}

impl<T> Drop for Loose<T> {
    #[inline]
    fn drop(&mut self) {
        // An attached thread has the GIL, which no fork takes from it.
        let is_detached = IS_ATTACHED.get().copied().flatten().is_some_and(|is_attached| is_attached() == 0);
        let _alone: Option<RwLockReadGuard<'_, ()>> =
            is_detached.then(|| FORKS.read().unwrap_or_else(PoisonError::into_inner));
        // SAFETY: dropped once.
        unsafe { ManuallyDrop::drop(&mut self.0) };
    }
}
