//! The state of a graph of calls: values, their pending readers, the first exception.

use crate::interpreter::call::call_with;
use crate::interpreter::forks::Here;
use crate::interpreter::level::Level;
use pyo3::exceptions::PyBaseException;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use smallvec::SmallVec;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use weft_engine::{Cause, Step, StepContext};

/// Numbers of values or calls; most calls have a few.
pub(super) type Few = SmallVec<[u32; 4]>;

/// The argument of a call.
pub(super) enum Argument {
    /// This object.
    Value(Py<PyAny>),
    /// A value of the graph.
    Slot(u32),
    /// A new list.
    List(Vec<Argument>),
    /// The result of another call, made for this one.
    Call(Box<Function>),
    /// The result of one of Dask's nodes on the values of its keys.
    Node(Node),
}

/// A function with its arguments.
pub(super) struct Function {
    pub(super) callable: Py<PyAny>,
    pub(super) positional: SmallVec<[Argument; 2]>,
    pub(super) named: Vec<(Py<PyAny>, Argument)>,
}

/// A node that computes by itself.
pub(super) struct Node {
    pub(super) node: Py<PyAny>,
    pub(super) needs: Vec<(Py<PyAny>, u32)>,
}

/// One call: key, function, arguments, the place of its value.
pub(super) struct Task {
    pub(super) key: Py<PyAny>,
    pub(super) work: Argument,
    pub(super) reads: Few,
    pub(super) slot: u32,
}

/// A value, and how many calls still need it.
#[derive(Default)]
pub(super) struct Slot {
    pub(super) value: Option<Py<PyAny>>,
    pub(super) readers: u32,
    /// Whether it is asked for in the end.
    pub(super) wanted: bool,
}

/// The callbacks around each call.
pub(super) struct Observers {
    pub(super) before: Option<Py<PyAny>>,
    pub(super) after: Option<Py<PyAny>>,
}

impl Argument {
    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self {
            Self::Value(value) => visit.call(value),
            Self::Slot(_) => Ok(()),
            Self::List(items) => items.iter().try_for_each(|item| item.traverse(visit)),
            Self::Call(function) => {
                visit.call(&function.callable)?;
                function.positional.iter().try_for_each(|item| item.traverse(visit))?;
                function.named.iter().try_for_each(|(name, item)| {
                    visit.call(name)?;
                    item.traverse(visit)
                })
            }
            Self::Node(node) => {
                visit.call(&node.node)?;
                node.needs.iter().try_for_each(|(key, _)| visit.call(key))
            }
        }
    }
}

/// A computation. Nothing of Python's runs, or goes, under the lock of a value.
pub(super) struct Run {
    tasks: Vec<Task>,
    slots: Vec<Mutex<Slot>>,
    wanted: Vec<(Py<PyAny>, u32)>,
    observers: Observers,
    stopped: OnceLock<()>,
    error: Mutex<Option<Py<PyBaseException>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Run {
    pub(super) fn new(tasks: Vec<Task>, slots: Vec<Slot>, wanted: Vec<(Py<PyAny>, u32)>, observers: Observers) -> Self {
        let slots = slots.into_iter().map(Mutex::new).collect();
        Self { tasks, slots, wanted, observers, stopped: OnceLock::new(), error: Mutex::new(None) }
    }

    /// Shows all to the collector.
    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        for task in &self.tasks {
            visit.call(&task.key)?;
            task.work.traverse(visit)?;
        }
        // Where nothing runs no lock is held, but by the thread that has started the collector.
        for slot in self.slots.iter().filter_map(|slot| slot.try_lock().ok()) {
            visit.call(&slot.value)?;
        }
        self.wanted.iter().try_for_each(|(key, _)| visit.call(key))?;
        visit.call(&self.observers.before)?;
        visit.call(&self.observers.after)?;
        self.error.try_lock().map_or(Ok(()), |error| visit.call(&*error))
    }

    pub(super) fn keys(&self) -> impl ExactSizeIterator<Item = &Py<PyAny>> {
        self.tasks.iter().map(|task| &task.key)
    }

    /// The keys of calls in words, for a trace.
    pub(super) fn name(&self, py: Python<'_>, calls: &[u32]) -> String {
        let word = |at: u32| {
            self.tasks[at as usize].key.bind(py).str().map_or_else(|_| "task".to_owned(), |text| text.to_string())
        };
        match calls {
            [first, .., last] => format!("{} ... {}", word(*first), word(*last)),
            _ => calls.iter().map(|&at| word(at)).collect(),
        }
    }

    /// Whether the value of a call is asked for in the end.
    pub(super) fn is_wanted(&self, at: u32) -> bool {
        lock(&self.slots[self.tasks[at as usize].slot as usize]).wanted
    }

    pub(super) fn stop(&self) {
        let _ = self.stopped.set(());
    }

    /// Notes the exception of a call: the first counts, and nothing begins after it.
    fn fail(&self, py: Python<'_>, error: PyErr) {
        self.stop();
        let value = error.into_value(py);
        let mut first = lock(&self.error);
        if first.is_none() {
            *first = Some(value);
        }
    }

    /// The values that are wanted, or the first exception. Other values are dropped.
    pub(super) fn take<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let error = lock(&self.error).take();
        let found = PyDict::new(py);
        for (key, slot) in &self.wanted {
            let value = lock(&self.slots[*slot as usize]).value.as_ref().map(|value| value.clone_ref(py));
            if let Some(value) = value {
                found.set_item(key, value)?;
            }
        }
        for slot in &self.slots {
            let value = lock(slot).value.take();
            drop(value);
        }
        match error {
            Some(error) => Err(PyErr::from_value(error.into_bound(py).into_any())),
            None => Ok(found),
        }
    }

    fn value<'py>(&self, py: Python<'py>, slot: u32) -> PyResult<Bound<'py, PyAny>> {
        let value = lock(&self.slots[slot as usize]).value.as_ref().map(|value| value.clone_ref(py));
        // The engine has made it, unless the values of a stopped graph were taken.
        value.map(|value| value.into_bound(py)).ok_or_else(|| {
            pyo3::exceptions::PyRuntimeError::new_err("the graph was stopped while this task was being begun")
        })
    }

    fn evaluate<'py>(&self, py: Python<'py>, argument: &Argument) -> PyResult<Bound<'py, PyAny>> {
        match argument {
            Argument::Value(value) => Ok(value.bind(py).clone()),
            Argument::Slot(slot) => self.value(py, *slot),
            Argument::List(items) => {
                let _level = Level::enter(py)?;
                let items: PyResult<Vec<_>> = items.iter().map(|item| self.evaluate(py, item)).collect();
                Ok(PyList::new(py, items?)?.into_any())
            }
            Argument::Call(function) => {
                let _level = Level::enter(py)?;
                let positional: PyResult<SmallVec<[_; 4]>> =
                    function.positional.iter().map(|item| self.evaluate(py, item)).collect();
                let positional = PyTuple::new(py, positional?)?;
                let named = if function.named.is_empty() {
                    None
                } else {
                    let named = PyDict::new(py);
                    for (name, value) in &function.named {
                        named.set_item(name, self.evaluate(py, value)?)?;
                    }
                    Some(named)
                };
                call_with(function.callable.bind(py), &positional, named.as_ref())
            }
            Argument::Node(Node { node, needs }) => {
                let values = PyDict::new(py);
                for (key, slot) in needs {
                    values.set_item(key, self.value(py, *slot)?)?;
                }
                call_with(node.bind(py), &PyTuple::new(py, [values])?, None)
            }
        }
    }

    fn compute(&self, py: Python<'_>, task: &Task) -> PyResult<()> {
        if let Some(before) = &self.observers.before {
            before.call1(py, (&task.key,))?;
        }
        let here = Here::now();
        let value = self.evaluate(py, &task.work);
        here.leave(py, &value);
        let value = value?;
        if let Some(after) = &self.observers.after {
            after.call1(py, (&task.key, &value))?;
        }
        lock(&self.slots[task.slot as usize]).value = Some(value.unbind());
        Ok(())
    }

    /// Drops the arguments of a call after their last reader.
    fn release(&self, task: &Task) {
        for &slot in &task.reads {
            let gone = {
                let mut slot = lock(&self.slots[slot as usize]);
                slot.readers -= 1;
                if slot.readers == 0 && !slot.wanted { slot.value.take() } else { None }
            };
            drop(gone);
        }
    }
}

/// Calls that go one after another, as a step.
pub(super) struct Chain(pub(super) Vec<u32>);

impl Step<Run> for Chain {
    fn run(&self, run: &Run, _: &mut StepContext<'_, '_>) -> Result<(), Cause> {
        // SAFETY: hosted steps run inside `Gil::enter`.
        let py = unsafe { Python::assume_attached() };
        for &call in &self.0 {
            if run.stopped.get().is_some() {
                break;
            }
            let task = &run.tasks[call as usize];
            match run.compute(py, task) {
                Ok(()) => run.release(task),
                Err(error) => run.fail(py, error),
            }
        }
        Ok(())
    }
}
