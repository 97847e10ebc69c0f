//! MPI: communicators, and their calls as ops on arrays.

use crate::array::{NDArray, raised};
use crate::engine::Engine;
use crate::errors;
use crate::interpreter::failures::CommunicatorFailure;
use crate::location::Location;
use crate::tape::record;
use crate::trace;
use crate::variable::Variable;
use pyo3::prelude::*;
use std::mem::offset_of;
use std::sync::Arc;
use std::time::Duration;
use weft_array::{Access, Array, ArrayError, Call, Opaque, Operands, Repeatable, Step, recording, submit};
use weft_engine::trace::Kind;
use weft_engine::{AccessKind, Accesses, Cause, InOrder, OpContext, Payload, PlaceOffset, PushOptions};
use weft_mpi::{Communicator, Constants, Job, Library, Place, Settings, Work};

/// The MPI library of this process, which mpi4py has initialised.
#[pyclass(module = "weft._core", frozen, name = "_MpiLibrary")]
pub(crate) struct MpiLibrary(Arc<Library>);

#[pymethods]
impl MpiLibrary {
    #[new]
    fn new(
        py: Python<'_>,
        path: &str,
        in_place: isize,
        any_source: i32,
        byte: usize,
        multiple: bool,
    ) -> PyResult<Self> {
        let in_place = in_place.cast_unsigned();
        let constants = Constants { in_place, any_source, byte, multiple };
        // SAFETY: the package hands over mpi4py's own extension, and its constants.
        let library = unsafe { Library::open(path, constants) }.map_err(|error| errors::mpi(py, &error))?;
        Ok(Self(Arc::new(library)))
    }
}

/// Which of a communicator's queues a call goes through: messages overtake collectives, and each other's directions.
#[derive(Clone, Copy)]
enum Lane {
    Collectives,
    Sends,
    Receipts,
}

/// A communicator whose calls are ops.
#[pyclass(module = "weft._core", frozen, name = "_MpiCommunicator")]
pub(crate) struct MpiCommunicator {
    inner: Arc<Communicator>,
    engine: Py<Engine>,
    /// One for each lane: what was pushed first goes first.
    variables: [weft_engine::Variable; 3],
    queues: [InOrder; 3],
}

#[pymethods]
impl MpiCommunicator {
    #[new]
    #[allow(clippy::too_many_arguments)] // the package's
    fn new(
        library: &MpiLibrary,
        engine: Py<Engine>,
        name: &str,
        data: usize,
        control: usize,
        rank: usize,
        processes: Vec<Option<u32>>,
        check: bool,
        timeout: f64,
    ) -> Self {
        let settings = Settings {
            name: name.to_owned(),
            data,
            control,
            rank,
            size: processes.len(),
            processes,
            check,
            timeout: Duration::try_from_secs_f64(timeout).unwrap_or(Duration::MAX),
        };
        let names = ["", ":send", ":recv"].map(|lane| format!("mpi:{name}{lane}"));
        let variables = names.each_ref().map(|name| engine.get().inner.new_variable(Some(name)));
        let queues = names.map(|name| InOrder::named(&name));
        Self { inner: Arc::new(Communicator::new(Arc::clone(&library.0), settings)), engine, variables, queues }
    }

    /// The variable that every collective mutates.
    #[getter]
    fn variable(&self, py: Python<'_>) -> Variable {
        Variable::new(self.variables[0].clone(), self.engine.clone_ref(py))
    }

    /// The variables of collectives, of sends and of receipts.
    #[getter]
    fn variables(&self, py: Python<'_>) -> Vec<Variable> {
        self.variables.iter().map(|variable| Variable::new(variable.clone(), self.engine.clone_ref(py))).collect()
    }

    /// Why it is broken, or None.
    #[getter]
    fn broken(&self) -> Option<String> {
        self.inner.broken()
    }

    /// Whether no call is being carried out.
    #[getter]
    fn idle(&self) -> bool {
        self.inner.is_idle()
    }

    /// Raises what a call would raise now.
    fn refuse(&self, py: Python<'_>) -> PyResult<()> {
        self.inner.refuse().map_err(|error| errors::mpi(py, &error))
    }

    /// Breaks it, and tells the other ranks why.
    fn fail(&self, py: Python<'_>, reason: &str) {
        py.detach(|| self.inner.fail(reason));
    }

    /// Tells the other ranks that this one ends.
    fn leave(&self, py: Python<'_>, reason: &str) {
        py.detach(|| self.inner.leave(reason));
    }

    /// Refuses to be used any more.
    fn close(&self) {
        self.inner.close();
    }

    /// Pushes a call: `verb` in words, what it does by name and number, what it reads and where it writes. Arrays are
    /// contiguous and in the host's memory; of one array alone it works in place.
    #[allow(clippy::too_many_arguments)] // the package's
    #[pyo3(signature = (verb, work, datatype, count, target=None, source=None, *, op=0, peer=0, tag=0))]
    fn push(
        &self,
        py: Python<'_>,
        verb: &str,
        work: &str,
        datatype: usize,
        count: i32,
        target: Option<&Bound<'_, NDArray>>,
        source: Option<&Bound<'_, NDArray>>,
        op: usize,
        peer: i32,
        tag: i32,
    ) -> PyResult<()> {
        self.refuse(py)?;
        let own = self.inner.settings().rank;
        let (work, lane) = match work {
            "all_reduce" => (Work::AllReduce { op }, Lane::Collectives),
            "broadcast" => (Work::Broadcast { root: peer }, Lane::Collectives),
            "all_gather" => (Work::AllGather, Lane::Collectives),
            "reduce_scatter" => (Work::ReduceScatter { op }, Lane::Collectives),
            "all_to_all" => (Work::AllToAll, Lane::Collectives),
            "send" => (Work::Send { to: peer, tag }, Lane::Sends),
            "recv" => (Work::Receive { from: peer, tag }, Lane::Receipts),
            "barrier" => (Work::Barrier, Lane::Collectives),
            _ => return Err(errors::argument_value(py, &format!("there is no collective '{work}'"))),
        };
        let written = target;
        let target = target.map(|array| &array.get().inner);
        let source = source.map(|array| &array.get().inner);
        for array in target.iter().chain(&source) {
            if !array.is_contiguous() {
                return Err(errors::argument_value(py, "a collective takes contiguous arrays"));
            }
        }
        let is_root = matches!(work, Work::Broadcast { root } if usize::try_from(root) == Ok(own));
        let write = match (source, work) {
            _ if is_root => Access::Read,
            (Some(_), _) | (None, Work::Broadcast { .. } | Work::Receive { .. }) => Access::Overwrite,
            (None, _) => Access::Mutate,
        };
        let arrays: Vec<(&Array, Access)> =
            target.map(|array| (array, write)).into_iter().chain(source.map(|array| (array, Access::Read))).collect();
        let location = Location::here(py);
        let of = source.or(target);
        let settings = self.inner.settings();
        let bytes = arrays.iter().map(|(array, _)| array.bytes()).max().unwrap_or(0);
        let place = if settings.check {
            Place::Known(location.describe(py).unwrap_or_default())
        } else {
            let words = move |py: Python<'_>| location.describe(py).unwrap_or_default();
            Place::Asked(Box::new(move || Python::try_attach(words).unwrap_or_default()))
        };
        let (signature, name) = describe(verb, of, bytes, settings.size);
        let job = Job { work, count, datatype, bytes, signature, place };
        let calling =
            Calling { communicator: Arc::clone(&self.inner), job, queue: self.queues[lane as usize], location };
        self.submit(py, calling, &arrays, lane, &name)?;
        if let Some(array) = written
            && write != Access::Read
        {
            record::wrote(py, array.get());
        }
        Ok(())
    }
}

impl MpiCommunicator {
    fn submit(
        &self,
        py: Python<'_>,
        calling: Calling,
        arrays: &[(&Array, Access)],
        lane: Lane,
        name: &str,
    ) -> PyResult<()> {
        let engine = self.engine.get();
        let variables = [(&self.variables[lane as usize], AccessKind::Mutate)];
        let mut options = PushOptions { name: Some(name), ..PushOptions::default() };
        let location = calling.location;
        let operands: Operands = arrays.iter().map(|(array, access)| ((*array).clone(), *access)).collect();
        let payload = Carry { location, calling: Arc::new(calling), arrays: operands };
        engine.make_way(py, options.bytes, || recording::announce(name, location.bits()))?;
        if arrays.is_empty() && recording::is_open() {
            let step = Step::Opaque(payload.calling);
            return recording::append_on_variables(step, &engine.inner, &variables, &options)
                .map_err(|error| raised(py, error));
        }
        if engine.inner.is_traced() {
            options.note = trace::of_arrays(py, &engine.inner, Kind::Copy, name);
        }
        if arrays.is_empty() {
            let mut accesses = Accesses::new(&engine.inner);
            for (variable, kind) in variables {
                accesses.add(variable, kind).map_err(|error| errors::raised(py, error))?;
            }
            let push = || engine.inner.push_unlimited(payload, &mut accesses, &options);
            return push().map_err(|error| errors::raised(py, error));
        }
        let call = Call { variables: &variables, ..Call::on(&engine.inner, arrays, options) };
        submit(payload, &call).map_err(|error| raised(py, error))
    }
}

/// A call's signature and the name of its op.
fn describe(verb: &str, array: Option<&Array>, bytes: usize, ranks: usize) -> (String, String) {
    let Some(array) = array else { return (verb.to_owned(), format!("{verb}, {ranks} ranks")) };
    let shape = &array.layout().shape;
    let listed: Vec<String> = shape.iter().map(ToString::to_string).collect();
    let comma = if listed.len() == 1 { "," } else { "" };
    let signature = format!("{verb} of {} ({}{comma})", array.dtype().name(), listed.join(", "));
    (signature, format!("{verb}, {}, {ranks} ranks", in_units(bytes)))
}

/// Bytes, in the unit that suits.
fn in_units(bytes: usize) -> String {
    #[allow(clippy::cast_precision_loss)] // to be read
    let number = bytes as f64;
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{:.1} KiB", number / 1024.0),
        _ => format!("{:.1} MiB", number / 1_048_576.0),
    }
}

/// A call apart from its arrays: they come each time in the same order, that which is written to first.
struct Calling {
    communicator: Arc<Communicator>,
    job: Job,
    queue: InOrder,
    location: Location,
}

impl Calling {
    fn carry_out(&self, arrays: &Operands) -> Result<(), Cause> {
        let mut starts = Vec::with_capacity(2);
        for (array, _) in arrays {
            starts.push(array.buffer().start()?.wrapping_add(array.layout().offset));
        }
        let nothing = std::ptr::null_mut();
        let (target, source) = match starts[..] {
            [target, source] => (target, source),
            [both] => (both, both),
            _ => (nothing, nothing),
        };
        // SAFETY: the op was granted these arrays, which are contiguous and of as many elements as the job has.
        let outcome = unsafe { self.communicator.run(&self.job, source, target) };
        outcome.map_err(|error| {
            if error.is_abandoned() {
                // MPI may still write there.
                std::mem::forget(arrays.clone());
            }
            Cause::Error(Box::new(CommunicatorFailure { error, location: self.location }))
        })
    }

    /// The other ranks wait for what this one has skipped.
    fn skipped(&self) {
        let (rank, what) = (self.communicator.settings().rank, self.job.describe());
        let reason = format!("rank {rank} did not take part in {what}, as what it depends on has failed there");
        self.communicator.fail(&reason);
    }
}

impl Opaque for Calling {
    fn is_hosted(&self) -> bool {
        false
    }

    fn queue(&self) -> Option<InOrder> {
        Some(self.queue)
    }

    fn run(&self, arrays: &Operands, _: &mut OpContext<'_>) -> Result<(), Cause> {
        self.carry_out(arrays)
    }

    fn discard(&self) {
        self.skipped();
    }

    fn place(&self) -> u64 {
        self.location.bits()
    }
}

/// A call as the payload of one op.
struct Carry {
    location: Location,
    calling: Arc<Calling>,
    arrays: Operands,
}

impl Payload for Carry {
    // SAFETY: a `Location` is eight bytes without padding.
    const PLACE: Option<PlaceOffset<Self>> = Some(unsafe { PlaceOffset::new(offset_of!(Carry, location)) });

    fn queue(&self) -> Option<InOrder> {
        Some(self.calling.queue)
    }

    fn run(self, _: &mut OpContext<'_>) -> Result<(), Cause> {
        self.calling.carry_out(&self.arrays)
    }

    fn discard(self) {
        self.calling.skipped();
    }
}

impl Repeatable for Carry {
    fn into_step(self) -> Result<Arc<dyn Opaque>, ArrayError> {
        Ok(self.calling)
    }
}
