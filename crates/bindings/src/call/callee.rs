//! The core's record of an op: its plans, its ways, and its means of computing.

use super::alike::{Alike, Memory};
use super::entry::Named;
use super::kind::{Kind, Taken, packed};
use super::native::Native;
use super::plan::Plan;
use super::table::Table;
use super::way::{Way, Ways};
use crate::array::operator::{OPERATORS, Operator, number_of};
use crate::interpreter::dtypes;
use pyo3::exceptions::PyRuntimeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Plans that an op remembers at most: all pairs of dtypes, about.
const PLANS: usize = 512;

/// Facts of an element-wise op.
#[allow(clippy::struct_excessive_bools)] // each is a fact of its own
pub(super) struct Element {
    pub(super) ufunc: Py<PyAny>,
    /// The number of its operands.
    nin: usize,
    pub(super) compares: bool,
    /// Its rule is the user's, not the ufunc's.
    pub(super) has_own_rule: bool,
    /// The ufunc, and not a function of the user's, also computes operands of other dtypes.
    pub(super) casts: bool,
    pub(super) host_replaced: bool,
    pub(super) device_replaced: bool,
}

impl Element {
    fn copied(&self, py: Python<'_>) -> Self {
        Self { ufunc: self.ufunc.clone_ref(py), ..*self }
    }
}

/// Facts of an op that calls ask for. `generation` counts their changes: a plan made before a change is not remembered.
#[derive(Default)]
pub(super) struct Facts {
    element: Option<Element>,
    pub(super) answer: Option<Py<PyAny>>,
    pub(super) answer_effort: usize,
    pub(super) prepare: Option<Py<PyAny>>,
    pub(super) native: Option<Py<Native>>,
    plans: Table<Py<Plan>>,
    pub(super) ways: Ways,
    pub(super) generation: u64,
}

/// The part of an op that the core calls: the base of `weft.ops.Op`.
#[pyclass(module = "weft._core", subclass, frozen)]
#[derive(Default)]
pub(crate) struct Callee {
    /// The first look of a walk.
    pub(super) alike: Alike,
    facts: Mutex<Facts>,
}

impl Callee {
    pub(super) fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes facts, and drops the plans and ways derived from them.
    fn change<R>(&self, change: impl FnOnce(&mut Facts) -> R) -> R {
        let (result, gone) = {
            let facts = &mut *self.facts();
            facts.generation += 1;
            let result = change(facts);
            (result, (std::mem::take(&mut facts.plans), std::mem::take(&mut facts.ways)))
        };
        drop(gone); // after the lock: the drop may run Python
        result
    }
}

#[pymethods]
impl Callee {
    #[new]
    #[pyo3(signature = (*_positional, **_named))]
    fn new(_positional: &Bound<'_, PyTuple>, _named: Option<&Bound<'_, PyDict>>) -> Self {
        Self::default()
    }

    /// Lets the inner loops of `ufunc` compute the op; if it `casts`, operands of other dtypes, too.
    fn _compute_by(&self, ufunc: &Bound<'_, PyAny>, has_own_rule: bool, casts: bool) -> PyResult<()> {
        let element = Element {
            nin: ufunc.getattr(intern!(ufunc.py(), "nin"))?.extract()?,
            ufunc: ufunc.clone().unbind(),
            compares: false,
            has_own_rule,
            casts,
            host_replaced: false,
            device_replaced: false,
        };
        drop(self.change(|facts| facts.element.replace(element)));
        Ok(())
    }

    /// Lets the type slot of an operator call the op.
    fn _operate(slf: &Bound<'_, Self>, name: &str, compares: bool) -> PyResult<()> {
        let operator = number_of(name)?;
        let _ = OPERATED[operator].set(slf.py(), slf.clone().unbind()); // a second op is not called
        slf.get().change(|facts| {
            if let Some(element) = &mut facts.element {
                element.compares = compares;
            }
        });
        Ok(())
    }

    /// Says that the op has a new rule.
    fn _follow_rule(&self) {
        self.alike.replace(Memory::Host);
        self.alike.replace(Memory::Device);
        self.change(|facts| {
            if let Some(element) = &mut facts.element {
                element.has_own_rule = true;
            }
        });
    }

    /// Lets a kind of device compute the op in its own way. Loops and native runs no longer serve the op there.
    fn _replace_on(&self, kind: &str) {
        self.alike.replace(if kind == "cpu" { Memory::Host } else { Memory::Device });
        let gone = self.change(|facts| {
            if let Some(element) = &mut facts.element {
                *(if kind == "cpu" { &mut element.host_replaced } else { &mut element.device_replaced }) = true;
            }
            if kind == "cpu" { (facts.answer.take(), facts.native.take()) } else { (None, None) }
        });
        drop(gone);
    }

    /// Drops every faster way than the op's `compute`.
    fn _slow_down(&self) {
        let gone = self.change(|facts| (facts.answer.take(), facts.native.take()));
        drop(gone);
    }

    /// Lets `answer(*operands, **attributes)` say what the op returns for arrays that are there and reach so many bytes at most.
    fn _answer_by(&self, answer: Py<PyAny>, effort: usize) {
        let gone = self.change(|facts| {
            facts.answer_effort = effort;
            facts.answer.replace(answer)
        });
        drop(gone);
    }

    /// Lets the core compute the op, without Python.
    fn _run_by(&self, native: Py<Native>) {
        drop(self.change(|facts| facts.native.replace(native)));
    }

    /// Lets ``prepare(*operands, **attributes)`` bring attributes into the form that rules know. It may depend on the
    /// operands' shapes and dtypes only.
    fn _prepare_by(&self, prepare: Py<PyAny>) {
        drop(self.change(|facts| facts.prepare.replace(prepare)));
    }

    /// The function given to `_prepare_by`.
    #[getter]
    fn _prepare(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.facts().prepare.as_ref().map(|prepare| prepare.clone_ref(py))
    }

    /// The plan for these operands, arrays and Python numbers; `dtype` is the caller's wish.
    #[pyo3(signature = (operands, dtype=None))]
    fn _plan(
        slf: &Bound<'_, Self>,
        operands: &Bound<'_, PyTuple>,
        dtype: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<Plan>> {
        let kinds: Option<super::kind::Kinds> = operands.iter().map(|operand| Kind::of(&operand)).collect();
        let kinds = kinds.ok_or_else(|| PyRuntimeError::new_err("a plan is for arrays and numbers"))?;
        let dtype = dtype.map(dtypes::from_python).transpose()?;
        match Self::plan(slf, &kinds, dtype)? {
            Some(plan) => Ok(plan),
            None => Err(PyRuntimeError::new_err("an op without a ufunc has no plan")),
        }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.alike.traverse(&visit)?;
        // The holder of the lock keeps the contents alive: nothing is garbage then.
        let Ok(facts) = self.facts.try_lock() else { return Ok(()) };
        if let Some(element) = &facts.element {
            visit.call(&element.ufunc)?;
        }
        visit.call(&facts.answer)?;
        visit.call(&facts.prepare)?;
        visit.call(&facts.native)?;
        facts.plans.values().try_for_each(|plan| visit.call(plan))?;
        facts.ways.traverse(&visit)
    }

    fn __clear__(&self) {
        let gone = std::mem::take(&mut *self.facts());
        drop(gone); // may run Python
    }
}

/// The core's knowledge of a call before any rule is asked.
pub(super) enum Known {
    Plan(Py<Plan>),
    /// An element-wise op without a plan for these operands.
    Unplanned,
    Way(Py<Way>),
    /// No way is remembered; this many changes of the op's facts were seen.
    Unasked(u64),
    /// No way, because only NumPy's function is asked, for arrays of at most this many bytes.
    Answer(Py<PyAny>, usize),
    /// The call is beyond the walk.
    Nothing,
}

impl Callee {
    /// The plan or the way of a call over numbers and arrays on the host.
    #[inline]
    pub(super) fn known(
        &self,
        py: Python<'_>,
        kinds: &[Kind],
        operands: &[Taken<'_, '_>],
        attributes: &Named<'_, '_>,
    ) -> Known {
        let mut facts = self.facts();
        if let Some(element) = &facts.element {
            if !attributes.is_empty() || element.nin != kinds.len() {
                return Known::Nothing;
            }
            let plan = packed(kinds).and_then(|key| facts.plans.get(&key));
            return plan.map_or(Known::Unplanned, |plan| Known::Plan(plan.clone_ref(py)));
        }
        if facts.native.is_none() {
            let Some(answer) = &facts.answer else { return Known::Nothing };
            if facts.prepare.is_none() {
                return Known::Answer(answer.clone_ref(py), facts.answer_effort);
            }
        }
        let operands = kinds.iter().zip(operands).map(|(kind, operand)| (*kind, operand.shape()));
        let way = facts.ways.find(py, operands, attributes);
        way.map_or(Known::Unasked(facts.generation), Known::Way)
    }

    /// The plan of an element-wise op for operands of these kinds; None for any other op or number of operands.
    #[inline]
    pub(super) fn plan(
        slf: &Bound<'_, Self>,
        kinds: &[Kind],
        dtype: Option<weft_array::DType>,
    ) -> PyResult<Option<Py<Plan>>> {
        let py = slf.py();
        let key = if dtype.is_none() { packed(kinds) } else { None };
        loop {
            let (element, generation) = {
                let facts = slf.get().facts();
                if let Some(plan) = key.and_then(|key| facts.plans.get(&key)) {
                    return Ok(Some(plan.clone_ref(py)));
                }
                let Some(element) = facts.element.as_ref().filter(|element| element.nin == kinds.len()) else {
                    return Ok(None);
                };
                (element.copied(py), facts.generation)
            };
            let plan = Py::new(py, Plan::make(slf, &element, kinds, dtype)?)?;
            let Some(key) = key else { return Ok(Some(plan)) };
            let facts = &mut *slf.get().facts();
            if facts.generation == generation {
                let gone = if facts.plans.len() >= PLANS { std::mem::take(&mut facts.plans) } else { Table::default() };
                facts.plans.insert(key, plan.clone_ref(py));
                drop(gone); // only plans: no Python runs
                return Ok(Some(plan));
            }
        }
    }

    /// Remembers a way, unless facts have changed since it was made.
    pub(super) fn remember(&self, way: Py<Way>, generation: u64) {
        let gone = {
            let facts = &mut *self.facts();
            (facts.generation == generation).then(|| facts.ways.insert(way))
        };
        drop(gone); // without the lock: names may be of classes of the user's
    }
}

/// The ops of the operators.
static OPERATED: [PyOnceLock<Py<Callee>>; OPERATORS] = [const { PyOnceLock::new() }; OPERATORS];

pub(super) fn operated(py: Python<'_>, operator: Operator) -> Option<&Bound<'_, Callee>> {
    OPERATED[operator as usize].get(py).map(|op| op.bind(py))
}

/// The Python functions that the walk calls.
pub(super) struct Carrier {
    /// `(op, operands, attributes, out, engine)`: makes a call that is beyond the walk.
    pub(super) carry: Py<PyAny>,
    /// `(op, operands, attributes)`: attributes in normal form and avals of the results, by an op's rule.
    pub(super) ask: Py<PyAny>,
}

static CARRIER: PyOnceLock<Carrier> = PyOnceLock::new();
/// The class of symbols, and `(op, operands, attributes, out)`: makes the symbol of a call over symbols.
static COMPOSER: PyOnceLock<[Py<PyAny>; 2]> = PyOnceLock::new();

/// Sets the Python functions that the walk calls: ``carry(op, operands, attributes, out, engine)`` makes calls that are
/// beyond the walk; ``ask(op, operands, attributes)`` returns attributes in normal form and avals, by an op's rule.
#[pyfunction]
pub(crate) fn set_carrier(py: Python<'_>, carry: Py<PyAny>, ask: Py<PyAny>) -> PyResult<()> {
    let twice = |_| PyRuntimeError::new_err("there is a carrier already");
    CARRIER.set(py, Carrier { carry, ask }).map_err(twice)
}

/// Sets ``compose(op, operands, attributes, out)``, which returns the symbol of a call over symbols, instances of
/// `symbolic`.
#[pyfunction]
pub(crate) fn set_composer(py: Python<'_>, symbolic: Py<PyAny>, compose: Py<PyAny>) -> PyResult<()> {
    COMPOSER.set(py, [symbolic, compose]).map_err(|_| PyRuntimeError::new_err("there is a composer already"))
}

pub(super) fn carrier(py: Python<'_>) -> PyResult<&Carrier> {
    CARRIER.get(py).ok_or_else(|| PyRuntimeError::new_err("weft is being imported"))
}

/// The function that composes a call over these operands; None if none of them is a symbol.
pub(super) fn composer<'a>(operands: &[Bound<'a, PyAny>]) -> PyResult<Option<&'a Bound<'a, PyAny>>> {
    let Some(first) = operands.first() else { return Ok(None) };
    let Some([symbolic, compose]) = COMPOSER.get(first.py()) else { return Ok(None) };
    for operand in operands {
        if operand.is_instance(symbolic.bind(first.py()))? {
            return Ok(Some(compose.bind(first.py())));
        }
    }
    Ok(None)
}
