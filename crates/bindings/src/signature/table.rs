//! `weft._core.Signatures`: from a call to its program.

use super::guards::Guard;
use super::key::{Around, Kept, Key};
use super::overlaps::{self, Shared};
use super::results::Results;
use super::surroundings::{Lifted, surroundings, switched_off};
use crate::array::NDArray;
use crate::array::moves::now;
use crate::engine::watching::hook_of_programs;
use crate::program::Compiled;
use crate::tape::marks::Standings;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use weft_array::recording;
use weft_program::Options;

/// A recorded program, and the calls that are its.
struct Entry {
    key: Kept,
    shared: Shared,
    guards: Vec<Guard>,
    /// How the tape knew the memory of its states, through any handles.
    standings: Standings,
    /// The function that answers the versions of the states whose values were read while recording, and its answer then.
    versions: Option<(Py<PyAny>, Py<PyAny>)>,
    run: Py<Compiled>,
    results: Results,
    /// Whether the tape listens to its calls, and goes on from their results.
    heard: bool,
    program: Py<PyAny>,
    used: Mutex<Used>,
}

#[derive(Default)]
struct Used {
    /// The number of the last call of the table that was this program's.
    last: u64,
    calls: u64,
    /// The call that may be checked next, by number; 0 before the first one.
    next: u64,
    /// When the last call was checked, and how long that took.
    checked: Option<(Instant, Duration)>,
}

/// Where one of so many calls is to be checked, or of more, checks may take one part in so many of the time.
const SELDOM: u64 = 100;
const SHARE: u32 = 400;

impl Used {
    /// Counts a call. Answers whether it is to be checked against an eager one, if one of `every` is.
    #[inline]
    fn count(&mut self, every: u64) -> bool {
        self.calls += 1;
        // A division at each call would cost small programs a hundredth of their time.
        self.next = self.next.max(every);
        if every == 0 || self.calls < self.next {
            return false;
        }
        self.next = self.calls + every;
        let pays = |(end, took): (Instant, Duration)| end.elapsed() >= took.saturating_mul(SHARE);
        every < SELDOM || self.checked.is_none_or(pays)
    }
}

#[derive(Default)]
struct Table {
    entries: HashMap<u64, Vec<Arc<Entry>>>,
    calls: u64,
}

/// The programs of a function, by the signatures of its calls. `weft.program` returns a class made of it.
#[pyclass(module = "weft._core", subclass, frozen, weakref)]
pub(crate) struct Signatures {
    name: String,
    parameters: Vec<Py<PyString>>,
    defaults: Vec<Option<Py<PyAny>>>,
    statics: Vec<bool>,
    /// How many parameters take arguments by position, and whether one behind them takes all others; none if only Python
    /// can place arguments, as where some go by position alone.
    positions: Option<(usize, bool)>,
    verify: u64,
    instance: Option<Py<PyAny>>,
    table: Arc<Mutex<Table>>,
}

#[pymethods]
#[allow(clippy::needless_pass_by_value)] // as pyo3 has it
impl Signatures {
    #[new]
    #[pyo3(signature = (name, parameters, defaults, statics, positions, verify, instance, of))]
    #[allow(clippy::too_many_arguments)] // one caller, which has them all
    fn new(
        name: String,
        parameters: Vec<Py<PyString>>,
        defaults: Vec<Vec<Py<PyAny>>>,
        statics: Vec<bool>,
        positions: Option<(usize, bool)>,
        verify: u64,
        instance: Option<Py<PyAny>>,
        of: Option<PyRef<'_, Self>>,
    ) -> Self {
        let defaults = defaults.into_iter().map(|mut default| default.pop()).collect();
        let table = of.map_or_else(Arc::default, |other| Arc::clone(&other.table));
        Self { name, parameters, defaults, statics, positions, verify, instance, table }
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let this = slf.get();
        let Some(surrounding) = Self::surrounding(py)? else {
            if !recording::is_open()
                && switched_off() == 1
                && let Some(hook) = hook_of_programs(py)
            {
                return hook.into_bound(py).call_method1(intern!(py, "calling"), (slf, args, kwargs));
            }
            return slf.call_method1("_eagerly", (args, kwargs));
        };
        let arguments = match this.placed(args, kwargs)? {
            Some(arguments) => arguments,
            None => SmallVec::from_iter(slf.call_method1("_bind", (args, kwargs))?.cast::<PyTuple>()?),
        };
        let key = match this.key(&arguments, &surrounding) {
            Ok(key) => key,
            // A symbol equals itself alone, and composes.
            Err(refused) => {
                let composes = slf.call_method1("_composes", (PyTuple::new(py, arguments)?,))?;
                return if composes.is_truthy()? { slf.call_method1("_eagerly", (args, kwargs)) } else { Err(refused) };
            }
        };
        match this.find(py, &key)? {
            Some(entry) => this.run(slf, &entry, &arguments, &key),
            None => slf.call_method1("_record", (PyTuple::new(py, arguments)?,)),
        }
    }

    /// The program of a call, or None if there is none yet.
    fn _find<'py>(&self, py: Python<'py>, arguments: &Bound<'py, PyTuple>) -> PyResult<Option<Py<PyAny>>> {
        let arguments: SmallVec<[_; 8]> = arguments.iter().collect();
        let key = self.key(&arguments, &surroundings(py)?.unwrap_or_default())?;
        Ok(self.find(py, &key)?.map(|entry| entry.program.clone_ref(py)))
    }

    /// Calls it as a program, though these are switched off once.
    #[pyo3(signature = (args, kwargs))]
    fn _as_program<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _lifted = Lifted::begin();
        Self::__call__(slf, args, kwargs)
    }

    /// The program of a call, or None; also where programs are switched off once. If there is none it is made where a level of the
    /// stack is given, for warnings.
    #[pyo3(signature = (args, kwargs, stacklevel=None))]
    fn _program_of<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
        stacklevel: Option<usize>,
    ) -> PyResult<Option<Py<PyAny>>> {
        let (py, this) = (slf.py(), slf.get());
        let _lifted = Lifted::begin();
        let Some(surrounding) = Self::surrounding(py)? else { return Ok(None) };
        let arguments = match this.placed(args, kwargs)? {
            Some(arguments) => arguments,
            None => SmallVec::from_iter(slf.call_method1("_bind", (args, kwargs))?.cast::<PyTuple>()?),
        };
        let key = this.key(&arguments, &surrounding)?;
        match this.find(py, &key)? {
            Some(entry) => Ok(Some(entry.program.clone_ref(py))),
            None if stacklevel.is_some() => {
                Ok(Some(slf.call_method1("_lowered", (PyTuple::new(py, arguments)?, stacklevel))?.unbind()))
            }
            None => Ok(None),
        }
    }

    /// The parts of the arguments and of the surroundings in the signature of a call: for comparison.
    fn _parts<'py>(&self, py: Python<'py>, arguments: &Bound<'py, PyTuple>) -> PyResult<Vec<Py<PyTuple>>> {
        let statics = |at| self.statics.get(at).copied().unwrap_or(false);
        let part = |(at, value): (usize, Bound<'py, PyAny>)| Key::part(&value, statics(at), &|| self.named(py, at));
        arguments.iter().enumerate().map(part).collect()
    }

    /// The pairs of arrays of a call that share memory: their numbers, and the bytes between them.
    #[staticmethod]
    fn _overlaps(leaves: &Bound<'_, PyTuple>) -> Vec<(usize, usize, isize)> {
        overlaps::pairs(&leaves.iter().collect::<Vec<_>>()).to_vec()
    }

    /// The arrays of a call, in the order in which its program takes them.
    fn _leaves<'py>(&self, py: Python<'py>, arguments: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyTuple>> {
        let arguments: SmallVec<[_; 8]> = arguments.iter().collect();
        PyTuple::new(py, &self.key(&arguments, &Around::default())?.leaves)
    }

    /// Enters a program for calls with these arguments. Answers the earlier program, if there is one.
    #[allow(clippy::too_many_arguments)] // as in `new`
    fn _enter<'py>(
        &self,
        py: Python<'py>,
        arguments: &Bound<'py, PyTuple>,
        program: Py<PyAny>,
        run: Py<Compiled>,
        results: &Bound<'py, PyAny>,
        guards: Vec<Bound<'py, PyAny>>,
        states: Vec<Bound<'py, NDArray>>, // and arguments that the function refers to itself
        versions: Option<(Py<PyAny>, Py<PyAny>)>,
        heard: bool,
    ) -> PyResult<Py<PyAny>> {
        let arguments: SmallVec<[_; 8]> = arguments.iter().collect();
        let key = self.key(&arguments, &surroundings(py)?.unwrap_or_default())?;
        if let Some(earlier) = self.find(py, &key)? {
            return Ok(earlier.program.clone_ref(py));
        }
        let states: Vec<_> = states.iter().map(now).collect();
        let entry = Arc::new(Entry {
            key: key.keep(),
            shared: Shared::new(&states, &key),
            standings: Standings::of(states.iter().map(|state| state.get().inner.buffer())),
            guards: guards.iter().map(Guard::of).collect::<PyResult<_>>()?,
            versions,
            run,
            results: Results::of(results)?,
            heard,
            program: program.clone_ref(py),
            used: Mutex::default(),
        });
        self.count(&entry);
        let mut table = self.table();
        table.entries.entry(entry.key.hash).or_default().push(entry);
        drop(table);
        Ok(program)
    }

    /// The programs, the one used longest ago first.
    fn _programs(&self, py: Python<'_>) -> Vec<Py<PyAny>> {
        let mut entries: Vec<_> = self.table().entries.values().flatten().cloned().collect();
        // Once each: without a GIL others go on with their calls.
        entries.sort_by_cached_key(|entry| entry.used.lock().unwrap_or_else(PoisonError::into_inner).last);
        entries.iter().map(|entry| entry.program.clone_ref(py)).collect()
    }

    /// Forgets a program, or all of them.
    #[pyo3(signature = (program=None))]
    fn _forget(&self, py: Python<'_>, program: Option<Py<PyAny>>) {
        let mut dropped = Vec::new(); // outside of the lock: a dropped object may be a user's
        let mut table = self.table();
        for entries in table.entries.values_mut() {
            let (gone, kept): (Vec<_>, Vec<_>) = entries
                .drain(..)
                .partition(|entry| program.as_ref().is_none_or(|program| entry.program.bind(py).is(program)));
            dropped.extend(gone);
            *entries = kept;
        }
        table.entries.retain(|_, entries| !entries.is_empty());
        drop(table);
    }

    /// Makes the result of a call from those of its replay.
    #[staticmethod]
    fn _result<'py>(
        results: &Bound<'py, PyAny>,
        made: &Bound<'py, PyTuple>,
        given: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (made, given): (Vec<_>, Vec<_>) = (made.iter().collect(), given.iter().collect());
        Results::of(results)?.make(results.py(), &made, &given)
    }

    #[getter]
    fn _instance(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.instance.as_ref().map(|instance| instance.clone_ref(py))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.instance)?;
        for default in &self.defaults {
            visit.call(default)?;
        }
        if Arc::strong_count(&self.table) > 1 {
            return Ok(()); // each handle would count what the others hold
        }
        let Ok(table) = self.table.try_lock() else { return Ok(()) };
        for entry in table.entries.values().flatten().filter(|entry| Arc::strong_count(entry) == 1) {
            entry.traverse(&visit)?;
        }
        Ok(())
    }

    fn __clear__(&self) {
        let gone = self.table.try_lock().ok().map(|mut table| std::mem::take(&mut table.entries));
        drop(gone);
    }
}

impl Entry {
    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.key.objects.iter().try_for_each(|object| visit.call(object))?;
        self.guards.iter().try_for_each(|guard| guard.traverse(visit))?;
        if let Some((read, versions)) = &self.versions {
            visit.call(read)?;
            visit.call(versions)?;
        }
        visit.call(&self.run)?;
        self.results.traverse(visit)?;
        visit.call(&self.program)
    }
}

impl Signatures {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The surroundings of this call, or None if it just runs.
    #[inline]
    fn surrounding(py: Python<'_>) -> PyResult<Option<Around<'_>>> {
        if recording::is_open() { Ok(None) } else { surroundings(py) }
    }

    fn named(&self, py: Python<'_>, at: usize) -> String {
        let name = self.parameters.get(at).map_or("?".into(), |name| name.bind(py).to_string_lossy().into_owned());
        format!("{}: the argument '{name}'", self.name)
    }

    fn key<'py>(&self, arguments: &[Bound<'py, PyAny>], around: &Around<'py>) -> PyResult<Key<'py>> {
        let named = |at| match arguments.first() {
            Some(first) => self.named(first.py(), at),
            None => String::new(),
        };
        Key::of(arguments, &self.statics, &named, around)
    }

    /// The arguments in the order of the parameters; None if only Python can say.
    #[inline]
    fn placed<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Option<SmallVec<[Bound<'py, PyAny>; 8]>>> {
        let named = kwargs.map_or(0, PyDictMethods::len);
        let Some((positions, rest)) = self.positions else { return Ok(None) };
        if args.len() > positions && !rest {
            return Ok(None);
        }
        let mut arguments: SmallVec<[_; 8]> = args.iter().take(positions).collect();
        let mut taken = 0;
        for at in arguments.len()..self.parameters.len() {
            if rest && at == positions {
                arguments.push(args.get_slice(positions, args.len()).into_any());
                continue;
            }
            let given = match kwargs {
                Some(kwargs) => kwargs.get_item(self.parameters[at].bind(args.py()))?,
                None => None,
            };
            match (given, &self.defaults[at]) {
                (Some(given), _) => {
                    taken += 1;
                    arguments.push(given);
                }
                (None, Some(default)) => arguments.push(default.bind(args.py()).clone()),
                (None, None) => return Ok(None),
            }
        }
        Ok((taken == named).then_some(arguments))
    }

    /// Counts a call of a program. Answers whether it is to be checked.
    #[inline]
    fn count(&self, entry: &Entry) -> bool {
        let last = {
            let mut table = self.table();
            table.calls += 1;
            table.calls
        };
        let mut used = entry.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.last = last;
        used.count(self.verify)
    }

    /// The program of a call.
    #[inline]
    fn find(&self, py: Python<'_>, key: &Key<'_>) -> PyResult<Option<Arc<Entry>>> {
        let candidates: SmallVec<[Arc<Entry>; 2]> = match self.table().entries.get(&key.hash()) {
            Some(entries) => entries.iter().cloned().collect(),
            None => return Ok(None),
        };
        for entry in candidates {
            if entry.key.is(key)? && entry.shared.is(key) && self.holds(py, &entry)? {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }

    #[inline]
    fn holds(&self, py: Python<'_>, entry: &Entry) -> PyResult<bool> {
        if !entry.standings.hold() {
            return Ok(false);
        }
        for guard in &entry.guards {
            if !guard.holds(py, self.instance.as_ref())? {
                return Ok(false);
            }
        }
        match &entry.versions {
            Some((read, versions)) => read.bind(py).call0()?.eq(versions),
            None => Ok(true),
        }
    }

    fn run<'py>(
        &self,
        function: &Bound<'py, Self>,
        entry: &Entry,
        arguments: &[Bound<'py, PyAny>],
        key: &Key<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = function.py();
        let due = self.count(entry);
        if entry.heard {
            return function.call_method1("_heard", (&entry.program, PyTuple::new(py, arguments)?));
        }
        if due {
            let start = Instant::now();
            let made = function.call_method1("_verified", (&entry.program, PyTuple::new(py, arguments)?));
            entry.used.lock().unwrap_or_else(PoisonError::into_inner).checked = Some((Instant::now(), start.elapsed()));
            return made;
        }
        let program = entry.run.bind(py).get();
        let made = if key.hosts {
            let given = function.call_method1("_copied", (PyTuple::new(py, &key.leaves)?,))?.cast_into::<PyTuple>()?;
            program.call(py, &given.iter().collect::<SmallVec<[_; 8]>>(), Options::default())?
        } else {
            program.call(py, &key.leaves, Options::default())?
        };
        entry.results.make(py, &made, &key.leaves)
    }
}
