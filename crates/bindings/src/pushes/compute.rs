//! Ops on arrays whose payload is a Python function.

use super::kinds;
use super::memory::{self, Lasting};
use crate::array::moves::taken;
use crate::array::{NDArray, raised};
use crate::engine::variable::Variable;
use crate::hearing::record;
use crate::interpreter::arguments;
use crate::interpreter::call::call;
use crate::interpreter::devices;
use crate::interpreter::errors;
use crate::interpreter::exceptions::Exceptions;
use crate::interpreter::forks::Here;
use crate::interpreter::location::Location;
use crate::interpreter::loose::Loose;
use crate::payloads::answering::{self, Answering};
use crate::payloads::callable::{cause, name_of};
use crate::payloads::kept::Kept;
use crate::payloads::refuse_answering;
use crate::payloads::trace;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::any::Any;
use std::mem::offset_of;
use std::sync::Arc;
use weft_array::{Access, Array, ArrayError, Call, Opaque, Operands, Repeatable, recording, submit_overwriting};
use weft_engine::trace::Kind;
use weft_engine::{AccessKind, Cause, OpContext, Payload, PlaceOffset, PushOptions};

struct Compute {
    function: Loose<PyAny>,
    /// Called if the engine drops the op before it runs.
    dropped: Option<Loose<PyAny>>,
    arrays: Vec<(Array, Access)>,
    location: Location,
}

impl Payload for Compute {
    const HOSTED: bool = true;
    // SAFETY: a `Location` is eight bytes without padding.
    const PLACE: Option<PlaceOffset<Self>> = Some(unsafe { PlaceOffset::new(offset_of!(Compute, location)) });

    fn run(self, context: &mut OpContext<'_>) -> Result<(), Cause> {
        // SAFETY: hosted payloads run inside `Gil::enter`.
        let py = unsafe { Python::assume_attached() };
        let function = self.function.bind(py);
        compute(py, function, &self.arrays, (context, self.location))
            .map_err(|error| cause(py, Exceptions::of(context), &error, &name_of(context, function), self.location))
    }

    fn discard(self) {
        answering::tell(self.dropped);
    }
}

/// Calls a function with views of the arrays, on one of their streams if they are on a device.
fn compute(
    py: Python<'_>,
    function: &Bound<'_, PyAny>,
    arrays: &[(Array, Access)],
    (context, location): (&OpContext<'_>, Location),
) -> PyResult<()> {
    let mut run = || call_on(py, function, arrays).map_err(|error| errors::sifted(py, error));
    if !arrays.iter().any(|(array, _)| array.buffer().is_elsewhere()) {
        return run();
    }
    let name = name_of(context, function);
    devices::run(py, arrays, (&*name, location.bits()), &mut run)
}

/// Calls a function with views of the arrays.
fn call_on(py: Python<'_>, function: &Bound<'_, PyAny>, arrays: &[(Array, Access)]) -> PyResult<()> {
    let view = |(array, access): &(Array, Access)| {
        if array.buffer().is_elsewhere() {
            return kinds::view(py, array, *access == Access::Read);
        }
        memory::view(py, array, *access == Access::Read, Lasting::Op)
    };
    let views = arrays.iter().map(view).collect::<PyResult<Vec<_>>>()?;
    let here = Here::now();
    let answer = call(function, Some(&PyTuple::new(py, views)?));
    here.leave(py, &answer);
    answer.map(drop)
}

/// A step that calls the same function on other arrays each time.
struct Recomputing {
    function: Kept,
    location: Location,
}

impl Opaque for Recomputing {
    fn is_hosted(&self) -> bool {
        true
    }

    unsafe fn run(&self, arrays: &Operands, context: &mut OpContext<'_>) -> Result<(), Cause> {
        // SAFETY: hosted payloads run inside `Gil::enter`.
        let py = unsafe { Python::assume_attached() };
        let function = self.function.object().bind(py);
        compute(py, function, arrays, (context, self.location))
            .map_err(|error| cause(py, Exceptions::of(context), &error, &name_of(context, function), self.location))
    }

    fn place(&self) -> u64 {
        self.location.bits()
    }

    fn repeats(&self, is_pure: &dyn Fn(&dyn Any) -> bool) -> bool {
        is_pure(&self.function)
    }

    fn kept(&self, each: &mut dyn FnMut(&dyn Any)) {
        each(&self.function);
    }
}

impl Repeatable for Compute {
    fn into_step(self) -> Result<Arc<dyn Opaque>, ArrayError> {
        refuse_answering(self.dropped.as_ref())?;
        Ok(Arc::new(Recomputing { function: Kept::new(self.function), location: self.location }))
    }
}

/// Pushes an op that calls `func(*outputs, *mutated, *inputs)` on a worker with the GIL. The function gets NumPy
/// arrays, or CuPy arrays if all are on devices. The op also mutates `variable`, if one is given. `anywhere` is for
/// copies between the host and a device whose memory callables can reach.
#[pyfunction]
#[pyo3(signature = (func, outputs, inputs, mutated=None, *, name=None, variable=None, anywhere=false))]
pub(crate) fn push_compute(
    func: &Bound<'_, PyAny>,
    outputs: &Bound<'_, PyTuple>,
    inputs: &Bound<'_, PyTuple>,
    mutated: Option<&Bound<'_, PyTuple>>,
    name: Option<&str>,
    variable: Option<&Bound<'_, Variable>>,
    anywhere: bool,
) -> PyResult<()> {
    let py = func.py();
    arguments::check_callable("func", func)?;
    let mut held: Vec<(Bound<'_, NDArray>, Access)> = Vec::new();
    for (list, access) in [(Some(outputs), Access::Overwrite), (mutated, Access::Mutate), (Some(inputs), Access::Read)]
    {
        for item in list.into_iter().flatten() {
            held.push((taken(item)?, access));
        }
    }
    let Some((first, _)) = held.first() else { return Ok(()) };
    let engine = first.get().owner().get();
    let bytes: usize =
        held.iter().filter(|(_, access)| *access == Access::Overwrite).map(|(out, _)| out.get().inner.bytes()).sum();
    let location = Location::here(py);
    // As in `push_payload`.
    let is_wait = Answering::is(func) && held.iter().all(|(_, access)| *access == Access::Read);
    if recording::is_open() || !is_wait {
        engine.make_way(py, bytes as u64, || {
            let called = func.getattr("__name__").and_then(|name| name.extract::<String>());
            let name = name.map_or_else(|| called.unwrap_or_else(|_| "?".to_owned()), ToOwned::to_owned);
            recording::announce(&name, location.bits());
        })?;
    }
    let arrays: Vec<(&Array, Access)> = held.iter().map(|(array, access)| (&array.get().inner, *access)).collect();
    let (function, dropped) = Answering::open(func);
    let compute = |arrays: &[(&Array, Access)]| Compute {
        function: function.into(),
        dropped: dropped.map(Loose::from),
        arrays: arrays.iter().map(|(array, access)| ((*array).clone(), *access)).collect(),
        location,
    };
    let mut options = PushOptions { name, bytes: bytes as u64, ..PushOptions::default() };
    if engine.inner.is_observed() {
        options.note = trace::note_of_call(py, &engine.inner, Kind::Compute, name, func, location);
    }
    // It computes with NumPy on the CPU or with CuPy on a device, never with both.
    let anywhere = anywhere || arrays.iter().all(|(array, _)| array.buffer().is_elsewhere());
    let variables: Vec<_> = variable.iter().map(|variable| (&variable.get().inner, AccessKind::Mutate)).collect();
    let request = Call { anywhere, variables: &variables, ..Call::on(&engine.inner, &arrays, options) };
    // SAFETY: the function takes any arrays that it is given: these, or others like them.
    unsafe { submit_overwriting(&request, compute) }.map_err(|error| raised(py, error))?;
    for (array, access) in &held {
        if *access != Access::Read {
            record::wrote(py, array.get());
        }
    }
    Ok(())
}
