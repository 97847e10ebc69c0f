//! `weft.cuda.capture()`: what a thread pushes on a device is recorded there and then, and not run.
//!
//! | an op of the thread, while its capture is open | |
//! |---|---|
//! | a launch, a copy within the device, a callable that writes to arrays of the device alone | is recorded |
//! | another one that writes to an array of a device, or reads one that the capture writes | is refused |
//! | all others, of other threads above all | run as ever |

use super::graph::{Graph, State};
use super::hosted;
use super::memory::buffer_of;
use crate::array::{check_look, raised};
use crate::errors;
use pyo3::prelude::*;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use weft_array::recorded::{Mode, mode, set_captures};
use weft_array::{Access, Array, ArrayError, DType, Layout, Prepared, Tuple, granted, granting};
use weft_cuda::{CudaError, Device, DeviceBuffer, Label, Launch, Recorder, Region};
use weft_engine::Engine;

/// What keeps memory and code that the graph uses.
type Keepers = Vec<Py<PyAny>>;

/// A capture under way, on the thread that records.
pub(super) struct Recording {
    /// What it is to become.
    graph: Py<Graph>,
    label: Label,
    /// Begun with the first op, whose device and engine all have.
    recorder: Option<Recorder>,
    engine: Option<Engine>,
    /// Of each buffer an array that is all of it, and what is done to it.
    arrays: Vec<(Array, Access)>,
    /// Their places, by the addresses of buffers.
    places: HashMap<usize, usize>,
    /// Memory pools of callables, each with the number of its op. Memory of a pool goes to that op first, and then to ops
    /// that come after it.
    pools: Vec<(Py<PyAny>, usize)>,
    keepers: Keepers,
}

thread_local! {
    static RECORDING: RefCell<Option<Box<Recording>>> = const { RefCell::new(None) };
}

/// Whether this thread records what it pushes.
#[inline]
pub(crate) fn is_open() -> bool {
    mode() == Mode::Captures
}

fn key(array: &Array) -> usize {
    Arc::as_ptr(array.buffer()).addr()
}

fn described(array: &Array) -> String {
    format!("an array of shape {} and dtype {}", Tuple(&array.layout().shape), array.dtype().name())
}

impl Recording {
    fn name(&self) -> &str {
        self.label.name()
    }

    /// Whether the capture writes to an array's memory.
    fn writes(&self, array: &Array) -> bool {
        self.places.get(&key(array)).is_some_and(|place| self.arrays[*place].1 != Access::Read)
    }

    /// Refuses what no push would take, and what does not belong with the ops so far.
    fn check(&self, py: Python<'_>, op: &Label, engine: &Engine, arrays: &[(&Array, Access)]) -> PyResult<()> {
        for (array, access) in arrays {
            if *access != Access::Read && array.buffer().is_readonly() {
                return Err(raised(py, ArrayError::ReadOnly));
            }
            if granted(array).is_some() {
                return Err(raised(py, ArrayError::Granted { shape: array.layout().shape.to_vec() }));
            }
        }
        let same = |engine: &Engine| self.engine.as_ref().is_none_or(|own| own.is_same(engine));
        if same(engine) && arrays.iter().all(|(array, _)| array.engine().is_same(engine)) {
            return Ok(());
        }
        let message = format!("{op} belongs to another engine than the ops that capture '{}' has so far", self.name());
        Err(errors::capture(py, &message))
    }

    fn recorder(&mut self, device: &Device) -> Result<&mut Recorder, CudaError> {
        let recorder = match &mut self.recorder {
            Some(recorder) => recorder,
            none => none.insert(device.record(&self.label)?),
        };
        if recorder.device() == device {
            return Ok(recorder);
        }
        Err(CudaError::Capture(format!(
            "capture '{}' records ops of cuda:{}, and this one is of cuda:{}: capture each device on its own",
            self.label.name(),
            recorder.device().index(),
            device.index()
        )))
    }

    /// Notes an op that was recorded.
    fn note(&mut self, engine: &Engine, arrays: &[(&Array, Access)]) -> Result<(), ArrayError> {
        self.engine.get_or_insert_with(|| engine.clone());
        for (array, access) in arrays {
            let all = array.is_contiguous() && array.range() == (0..array.buffer().bytes());
            let access = if *access == Access::Overwrite && !all { Access::Mutate } else { *access };
            let place = *self.places.entry(key(array)).or_insert(self.arrays.len());
            match self.arrays.get_mut(place) {
                // What is overwritten first owes nothing to what was there, whatever comes after.
                Some((_, known)) if *known == Access::Overwrite || *known == access => {}
                Some((_, known)) if access != Access::Read => *known = Access::Mutate,
                Some(_) => {}
                None => {
                    let layout = Layout::contiguous(&[array.buffer().bytes()], 1)?;
                    self.arrays.push((Array::on(Arc::clone(array.buffer()), layout, DType::UInt8)?, access));
                }
            }
        }
        Ok(())
    }

    /// Makes the graph.
    pub(super) fn finish(mut self, py: Python<'_>) -> PyResult<State> {
        let Some(recorder) = self.recorder.take() else {
            let engine = py.import("weft._default")?.getattr("get_engine")?.call0()?;
            let engine = engine.cast_into::<crate::engine::Engine>()?.get().inner.clone();
            let prepared = Prepared::new(&engine, Vec::new()).map_err(|error| raised(py, error))?;
            return Ok(State::Ready { prepared, graph: None });
        };
        let Some(engine) = self.engine.take() else {
            // Its first op was refused by the driver.
            let finished = py.detach(|| recorder.finish(|_| false, Box::new(())).map(drop));
            return finished.map_err(|error| errors::cuda(py, error)).map(|()| State::Abandoned);
        };
        // What only this recording has a handle on, and nobody has ever pushed on, is the graph's alone.
        let (alone, shared): (Vec<_>, Vec<_>) = self.arrays.into_iter().partition(|(array, _)| array.is_alone());
        let address = |(array, _): &(Array, Access)| buffer_of(array).map(|buffer| Arc::as_ptr(&buffer).addr());
        let hidden: HashSet<usize> = alone.iter().filter_map(address).collect();
        let prepared = Prepared::new(&engine, shared).map_err(|error| raised(py, error))?;
        let mut keepers = self.keepers;
        keepers.extend(self.pools.into_iter().map(|(pool, _)| pool));
        let hidden = |buffer: &Arc<DeviceBuffer>| hidden.contains(&Arc::as_ptr(buffer).addr());
        let graph = py.detach(|| recorder.finish(hidden, Box::new(keepers)));
        let graph = Some(graph.map_err(|error| errors::cuda(py, error))?);
        drop(alone);
        Ok(State::Ready { prepared, graph })
    }
}

/// Begins to record for a graph.
fn begin(py: Python<'_>, graph: Py<Graph>) -> PyResult<()> {
    if mode() == Mode::Records {
        let message = "a recording is open on this thread, and captures do not nest in it: end it first";
        return Err(errors::capture(py, message));
    }
    if is_open() {
        let open = with(py, |recording| Ok(recording.name().to_owned()))?;
        let message = format!("capture '{open}' is open on this thread, and captures do not nest: end it first");
        return Err(errors::capture(py, &message));
    }
    RECORDING.with_borrow_mut(|recording| {
        let label = Label::new(Arc::clone(graph.get().label()), 0);
        let (recorder, engine, arrays, places, pools, keepers) = Default::default();
        *recording = Some(Box::new(Recording { graph, label, recorder, engine, arrays, places, pools, keepers }));
    });
    set_captures(true);
    Ok(())
}

/// Ends what was begun for a graph on this thread.
pub(super) fn end(py: Python<'_>, graph: &Bound<'_, Graph>) -> PyResult<Box<Recording>> {
    let taken =
        RECORDING.with(|recording| recording.try_borrow_mut().ok()?.take_if(|recording| recording.graph.is(graph)));
    let message = "a capture ends on the thread on which it began, and once: leave its block there";
    let recording = taken.ok_or_else(|| errors::capture(py, message))?;
    set_captures(false);
    Ok(recording)
}

fn with<T>(py: Python<'_>, body: impl FnOnce(&mut Recording) -> PyResult<T>) -> PyResult<T> {
    let done = RECORDING.with(|recording| match recording.try_borrow_mut() {
        Ok(mut recording) => recording.as_mut().map(|recording| body(recording)),
        // A finalizer that Python runs in the middle of recording.
        Err(_) => None,
    });
    done.unwrap_or_else(|| Err(errors::capture(py, "the op is pushed in the middle of recording another one")))
}

fn record(
    py: Python<'_>,
    (op, device, engine): (&Label, &Device, &Engine),
    arrays: &[(&Array, Access)],
    body: impl FnOnce(&mut Recorder) -> Result<(), CudaError> + Send,
) -> PyResult<()> {
    with(py, |recording| {
        recording.check(py, op, engine, arrays)?;
        py.detach(|| body(recording.recorder(device)?)).map_err(|error| errors::cuda(py, error))?;
        recording.note(engine, arrays).map_err(|error| raised(py, error))
    })
}

/// Records a launch.
pub(crate) fn launch(py: Python<'_>, engine: &Engine, launch: &Launch, arrays: &[(&Array, Access)]) -> PyResult<()> {
    let op = (launch.label(), launch.kernel().device(), engine);
    record(py, op, arrays, |recorder| recorder.launch(launch))
}

/// Records a copy within a device.
pub(crate) fn copy(
    py: Python<'_>,
    engine: &Engine,
    (target, source): (&Region, &Region),
    arrays: &[(&Array, Access)],
) -> PyResult<()> {
    let label = Label::from("copy");
    record(py, (&label, target.device(), engine), arrays, |recorder| recorder.copy(&label, target, source))
}

/// Refuses an op that cannot be recorded: one that writes to arrays of a device, or reads what the capture writes.
#[cold]
pub(crate) fn refuse(py: Python<'_>, op: &Label, arrays: &[(&Array, Access)], why: &str) -> PyResult<()> {
    with(py, |recording| {
        for (array, access) in arrays.iter().filter(|(array, _)| array.buffer().is_elsewhere()) {
            let (capture, what) = (recording.name(), described(array));
            if *access != Access::Read {
                let message = format!(
                    "{op} writes to {what} and cannot be recorded in capture '{capture}': {why}. Push it outside of the \
                     block, on an array that the graph reads"
                );
                return Err(errors::capture(py, &message));
            }
            if recording.writes(array) {
                let message = format!(
                    "{op} reads {what}, which capture '{capture}' writes, and cannot be recorded: {why}. Nothing of a \
                     capture runs in its block: replay the graph, then push this"
                );
                return Err(errors::capture(py, &message));
            }
        }
        Ok(())
    })
}

/// Refuses to wait for what the capture, or the recording, of this thread writes.
#[inline]
pub(crate) fn check_wait(py: Python<'_>, array: &Array) -> PyResult<()> {
    match mode() {
        Mode::Runs if array.buffer().recording().is_none() => Ok(()),
        Mode::Captures if array.buffer().is_elsewhere() => refuse_wait(py, array),
        Mode::Captures => Ok(()),
        Mode::Runs | Mode::Records => check_look(py, array),
    }
}

#[cold]
fn refuse_wait(py: Python<'_>, array: &Array) -> PyResult<()> {
    with(py, |recording| {
        if !recording.writes(array) {
            return Ok(());
        }
        let message = format!(
            "{} has no values yet that could be waited for: capture '{}' writes it, and nothing of a capture runs in its \
             block. End the block and replay the graph first",
            described(array),
            recording.name()
        );
        Err(errors::capture(py, &message))
    })
}

/// Records a callable that was pushed with these arrays, by calling it on the stream in capture; it answers whether it
/// did. What is not for a device runs as ever.
pub(crate) fn callable(
    py: Python<'_>,
    op: &str,
    function: Result<&Bound<'_, PyAny>, &str>,
    arrays: &[(Array, Access)],
    body: impl FnOnce() -> PyResult<()>,
) -> PyResult<bool> {
    let label = Label::from(op);
    let listed: Vec<_> = arrays.iter().map(|(array, access)| (array, *access)).collect();
    let device = hosted::device(arrays);
    let writes = arrays.iter().any(|(array, access)| array.buffer().is_elsewhere() && *access != Access::Read);
    let refused = match function {
        Err(why) => Some(why),
        Ok(_) if !arrays.iter().all(|(array, _)| array.buffer().is_elsewhere()) => Some("it uses memory of the host"),
        Ok(_) if !writes => Some("it writes to no array"),
        Ok(_) => None,
    };
    let (Ok(function), None, Some(device)) = (function, refused, device) else {
        refuse(py, &label, &listed, refused.unwrap_or("it is not for a device"))?;
        return Ok(false);
    };
    let engine = arrays[0].0.engine().clone();
    let accesses = hosted::accesses(arrays);
    let begun = with(py, |recording| {
        recording.check(py, &label, &engine, &listed)?;
        let recorder = recording.recorder(&device).map_err(|error| errors::cuda(py, error))?;
        let addresses = py.detach(|| recorder.begin(&label, &accesses)).map_err(|error| errors::cuda(py, error))?;
        let stream = recorder.stream().handle().0;
        let Some(recorder) = &recording.recorder else { unreachable!("it has begun an op") };
        let free = recording.pools.iter().position(|(_, op)| recorder.is_behind(*op));
        Ok((addresses, stream, free.map(|at| recording.pools.swap_remove(at).0)))
    });
    let (addresses, stream, pool) = begun?;
    let run = || -> PyResult<Py<PyAny>> {
        let module = py.import("weft._cuda.capture")?;
        let pool = pool.map_or_else(|| module.getattr("new_pool")?.call0().map(Bound::unbind), Ok)?;
        let entered = module.getattr("enter")?.call1((device.index(), stream, &pool))?;
        let outcome = granting(arrays, body);
        entered.call_method1("__exit__", (py.None(), py.None(), py.None())).and(outcome)?;
        Ok(pool)
    };
    let places = accesses.iter().map(|access| Arc::clone(&access.buffer)).zip(addresses).collect();
    let outcome = device.inside(|| hosted::as_current(device.index(), stream, places, run));
    let outcome = outcome.map_err(|error| errors::cuda(py, error)).and_then(|outcome| outcome);
    with(py, |recording| {
        let Some(recorder) = &mut recording.recorder else { unreachable!("it has begun an op") };
        let pool = outcome.inspect_err(|error| {
            recorder.fail(format!("{label} was recorded in part, and has failed: {error}"));
        })?;
        let number = py.detach(|| recorder.end(&label)).map_err(|error| errors::cuda(py, error))?;
        recording.pools.push((pool, number));
        recording.keepers.push(function.clone().unbind());
        recording.note(&engine, &listed).map_err(|error| raised(py, error))
    })?;
    Ok(true)
}

/// A graph, and this thread as the one that records for it.
#[pyfunction]
pub(crate) fn cuda_begin_capture(py: Python<'_>, name: Option<&str>) -> PyResult<Py<Graph>> {
    let graph = Py::new(py, Graph::new(name))?;
    begin(py, graph.clone_ref(py))?;
    Ok(graph)
}
