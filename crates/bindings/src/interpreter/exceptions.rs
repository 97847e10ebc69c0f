//! The exceptions that failed ops have raised.
//!
//! A failure lies in the engine's core, into which Python's garbage collector does not look; an exception in it, whose
//! traceback refers to the engine, would keep both for ever. So an engine's exceptions lie in one table, which
//! `weft.Engine` shows the collector, and failures hold places in it. Every object that can wait for a failed version, a
//! variable or an array, refers to that `weft.Engine`; an exiting process, which asks engines without references, is
//! told in words of the failures that the collector has taken.
//!
//! Invariant: only attached threads lock a table, and nothing of Python's runs under its lock. So the collector finds it
//! free and sees it whole, and so does a forked child.

use super::host::Gil;
use pyo3::exceptions::PyBaseException;
use pyo3::ffi;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PySet, PyTraceback, PyWeakrefMethods, PyWeakrefReference};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weft_engine::OpContext;

/// Exceptions handed out that need no look at all.
const FEW: usize = 8;

/// An exception with the traceback that it had when it was raised.
struct Exception {
    value: Py<PyBaseException>,
    traceback: Option<Py<PyTraceback>>,
    /// Whether its number is in [`Table::told`].
    told: bool,
}

/// Tells whether the collector has taken a table's exceptions, some of which may be cleared and not gone yet: it clears
/// weak references first.
struct Canary {
    object: Py<PySet>,
    alive: Py<PyWeakrefReference>,
}

impl Canary {
    fn new(py: Python<'_>) -> PyResult<Self> {
        let object = PySet::empty(py)?;
        let alive = PyWeakrefReference::new(&object)?.unbind();
        Ok(Self { object: object.unbind(), alive })
    }
}

struct Table {
    next: u64,
    places: BTreeMap<u64, Exception>,
    /// Those that a wait has raised: their tracebacks lead to the frames of that wait.
    told: Vec<u64>,
    /// How many there are when they are looked at.
    looked_at: usize,
    canary: Canary,
}

/// The exceptions of an engine.
pub(crate) struct Exceptions(Mutex<Table>);

impl Exceptions {
    pub(crate) fn new(py: Python<'_>) -> PyResult<Self> {
        let (places, told, canary) = (BTreeMap::new(), Vec::new(), Canary::new(py)?);
        Ok(Self(Mutex::new(Table { next: 0, places, told, looked_at: FEW, canary })))
    }

    /// Those of the engine that runs the op.
    pub(crate) fn of<'a>(context: &'a OpContext<'_>) -> &'a Arc<Self> {
        match context.host().downcast_ref::<Gil>() {
            Some(gil) => gil.exceptions(),
            None => unreachable!("every engine of this crate has this host"),
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps an exception until its place is dropped. None if there is no memory for that.
    pub(crate) fn keep(
        self: &Arc<Self>,
        py: Python<'_>,
        value: Py<PyBaseException>,
        traceback: Option<Py<PyTraceback>>,
    ) -> Option<Py<ExceptionSlot>> {
        self.revive(py).ok()?;
        let (number, many) = {
            let mut table = self.table();
            table.next += 1;
            (table.next, table.told.len() >= table.looked_at)
        };
        if many {
            self.forget_waits(py);
        }
        let place = Py::new(py, ExceptionSlot { exceptions: Arc::clone(self), number }).ok()?;
        self.table().places.insert(number, Exception { value, traceback, told: false });
        Some(place)
    }

    /// Takes the frames of waits from the tracebacks of exceptions that are not handled any more.
    ///
    /// Such a frame may hold the array whose failure the exception is: a cycle through the engine's core, which no
    /// collector sees. The next wait that raises it begins with the traceback from before in any case.
    pub(crate) fn forget_waits(&self, py: Python<'_>) {
        let mut table = self.table();
        let Table { places, told, .. } = &mut *table;
        let mut over = Vec::new();
        told.retain(|number| {
            let Some(exception) = places.get_mut(number) else { return false };
            exception.told = references(&exception.value) > 1;
            if !exception.told {
                over.push((exception.value.clone_ref(py), exception.traceback.as_ref().map(|it| it.clone_ref(py))));
            }
            exception.told
        });
        table.looked_at = (2 * table.told.len()).max(FEW);
        drop(table);
        for (value, traceback) in over {
            // The objects that the one before has dropped may have run a wait.
            if references(&value) <= 2 {
                set_traceback(py, &value, traceback);
            }
        }
    }

    /// Begins anew if the collector has taken the table and the engine lives all the same, as finalizers can have it.
    fn revive(&self, py: Python<'_>) -> PyResult<()> {
        let alive = self.table().canary.alive.clone_ref(py);
        if alive.bind(py).upgrade().is_none() {
            let fresh = Canary::new(py)?;
            let mut table = self.table();
            let same = table.canary.alive.is(&alive); // no other thread was faster
            let before = same.then(|| (std::mem::take(&mut table.places), std::mem::replace(&mut table.canary, fresh)));
            drop(table);
            drop(before);
        }
        Ok(())
    }

    /// Shows all to the collector.
    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        let table = self.table();
        visit.call(&table.canary.object)?;
        for exception in table.places.values() {
            visit.call(&exception.value)?;
            visit.call(&exception.traceback)?;
        }
        Ok(())
    }

    /// Lets all go.
    pub(crate) fn clear(&self) {
        let places = std::mem::take(&mut self.table().places);
        drop(places); // not under the lock: this may run anything
    }
}

/// A place in a table, whose end takes the exception out. Python's object, as these end where a thread is attached,
/// wherever they are let go.
#[pyclass(module = "weft._core", frozen, name = "_ExceptionSlot")]
pub(crate) struct ExceptionSlot {
    exceptions: Arc<Exceptions>,
    number: u64,
}

impl ExceptionSlot {
    /// The exception, to be raised again: its traceback begins anew where it was raised. None if the collector took it.
    pub(crate) fn exception(&self, py: Python<'_>) -> Option<Py<PyBaseException>> {
        let mut table = self.exceptions.table();
        let Table { places, told, .. } = &mut *table;
        let found = places.get_mut(&self.number).map(|found| {
            if !std::mem::replace(&mut found.told, true) {
                told.push(self.number);
            }
            (found.value.clone_ref(py), found.traceback.as_ref().map(|it| it.clone_ref(py)))
        });
        let alive = table.canary.alive.clone_ref(py);
        drop(table);
        let (value, traceback) = found?;
        // Asked now that these references keep the collector off.
        alive.bind(py).upgrade()?;
        set_traceback(py, &value, traceback);
        Some(value)
    }
}

/// How many refer to an exception, this one included.
fn references(value: &Py<PyBaseException>) -> isize {
    // SAFETY: it lives.
    unsafe { ffi::Py_REFCNT(value.as_ptr()) }
}

fn set_traceback(py: Python<'_>, value: &Py<PyBaseException>, traceback: Option<Py<PyTraceback>>) {
    let traceback = traceback.map_or_else(|| py.None(), Py::into_any);
    // By the interpreter itself: a class may refuse new attributes.
    // SAFETY: attached; the first is an exception, the other a traceback or None.
    unsafe { ffi::PyException_SetTraceback(value.as_ptr(), traceback.as_ptr()) };
}

impl Drop for ExceptionSlot {
    fn drop(&mut self) {
        let ended = self.exceptions.table().places.remove(&self.number);
        drop(ended); // not under the lock
    }
}

/// Makes the class of places: a thread that were to do it later could be caught in the middle by a fork.
pub(crate) fn load(py: Python<'_>) {
    let _ = py.get_type::<ExceptionSlot>();
}
