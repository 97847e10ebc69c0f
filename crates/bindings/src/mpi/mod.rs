//! MPI: communicators, and their calls as ops on arrays.

mod calling;

use crate::array::moves::now;
use crate::array::{NDArray, raised};
use crate::engine::Engine;
use crate::engine::variable::Variable;
use crate::hearing::record;
use crate::interpreter::errors;
use crate::interpreter::location::Location;
use crate::payloads::trace;
use calling::{Calling, CallingStep, Carry};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use weft_array::{Access, Array, Call, DType, Operands, Step, recording, submit};
use weft_engine::trace::Kind;
use weft_engine::{AccessKind, Accesses, InOrder, PushOptions};
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
    /// One for each lane: earlier pushes go first.
    variables: [weft_engine::Variable; 3],
    queues: [InOrder; 3],
    descriptions: Descriptions,
    /// Those that were made before, each once.
    plain: Mutex<Vec<Plain>>,
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
        let queues = names.map(|name| InOrder::lent(&name));
        let inner = Arc::new(Communicator::new(Arc::clone(&library.0), settings));
        Self { inner, engine, variables, queues, descriptions: Descriptions::default(), plain: Mutex::default() }
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

    /// Raises the error that a call would raise now.
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

    /// Learns how an array's dtype is reduced, for the next time.
    fn learn(&self, x: &Bound<'_, NDArray>, reduction: &str, verb: &str, datatype: usize, op: usize) {
        let dtype = now(x).get().inner.dtype();
        let mut plain = self.plain.lock().unwrap_or_else(PoisonError::into_inner);
        if !plain.iter().any(|known| known.is_of(reduction, dtype)) {
            plain.push(Plain { reduction: reduction.to_owned(), dtype, verb: verb.to_owned(), datatype, op });
        }
    }

    /// Pushes an all-reduce in place, if that is all there is to do: it was learnt, the array is contiguous, may be written
    /// to, lies on the host, and the tape knows nothing of it. Answers whether it did.
    fn reduce_in_place(&self, py: Python<'_>, x: &Bound<'_, NDArray>, reduction: &Bound<'_, PyAny>) -> PyResult<bool> {
        let x = &now(x);
        let array = x.get();
        let buffer = array.inner.buffer();
        if !array.inner.is_contiguous() || buffer.is_readonly() || buffer.is_elsewhere() || array.tape.is_known() {
            return Ok(false);
        }
        let (Ok(count), Ok(reduction)) = (i32::try_from(array.inner.layout().size()), reduction.cast::<PyString>())
        else {
            return Ok(false);
        };
        let (dtype, reduction) = (array.inner.dtype(), reduction.to_str()?);
        let plain = self.plain.lock().unwrap_or_else(PoisonError::into_inner);
        let known = plain.iter().find(|known| known.is_of(reduction, dtype));
        let Some((verb, datatype, op)) = known.map(|known| (known.verb.clone(), known.datatype, known.op)) else {
            return Ok(false);
        };
        drop(plain);
        self.push(py, &verb, "all_reduce", datatype, count, Some(x), None, op, 0, 0)?;
        Ok(true)
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
        let (own, ranks) = (self.inner.settings().rank, self.inner.settings().size);
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
        let (target, source) = (target.map(now), source.map(now));
        let written = target.as_ref();
        let target = target.as_ref().map(|array| &array.get().inner);
        let source = source.as_ref().map(|array| &array.get().inner);
        let (one, all) = (count.unsigned_abs() as usize, (count.unsigned_abs() as usize).saturating_mul(ranks));
        let (written_to, read) = match work {
            Work::AllGather => (all, one),
            Work::ReduceScatter { .. } => (one, all),
            Work::AllToAll => (all, all),
            _ => (one, one),
        };
        for (array, size) in
            target.iter().map(|array| (array, written_to)).chain(source.iter().map(|array| (array, read)))
        {
            if !array.is_contiguous() || array.layout().size() < size {
                return Err(errors::argument_value(py, "a collective takes contiguous arrays as large as its message"));
            }
        }
        if let (Some(target), Some(source)) = (&target, &source)
            && target.dtype() != source.dtype()
        {
            return Err(errors::argument_value(py, "a collective takes arrays of one dtype"));
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
        let (signature, name) = self.descriptions.of(verb, of, bytes, settings.size);
        let job = Job { work, count, datatype, bytes, signature, place };
        let (communicator, engine) = (Arc::clone(&self.inner), self.engine.get().inner.downgrade());
        let calling = Calling { communicator, engine, job, queue: self.queues[lane as usize], location };
        self.submit(py, calling, &arrays, lane, &name)?;
        if let Some(array) = written
            && write != Access::Read
        {
            record::wrote(py, array.get());
        }
        Ok(())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.engine)
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
            let step = Step::Opaque(Arc::new(CallingStep(payload.calling)));
            // SAFETY: it has no arrays.
            return unsafe { recording::append_on_variables(step, &engine.inner, &variables, &options) }
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
        // SAFETY: the payload has the arrays of the call, for which the job was made.
        unsafe { submit(payload, &call) }.map_err(|error| raised(py, error))
    }
}

/// How calls are described, in words: the last description serves until one differs.
#[derive(Default)]
struct Descriptions(Mutex<Option<Described>>);

struct Described {
    verb: String,
    of: Option<(DType, Vec<usize>)>,
    signature: Arc<str>,
    name: Arc<str>,
}

impl Descriptions {
    /// A call's signature and the name of its op.
    fn of(&self, verb: &str, array: Option<&Array>, bytes: usize, ranks: usize) -> (Arc<str>, Arc<str>) {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |known: &&mut Described| {
            let of = known.of.as_ref().map(|(dtype, shape)| (*dtype, &shape[..]));
            known.verb == verb && of == array.map(|array| (array.dtype(), &array.layout().shape[..]))
        };
        if let Some(known) = last.as_mut().filter(same) {
            return (Arc::clone(&known.signature), Arc::clone(&known.name));
        }
        let (signature, name) = describe(verb, array, bytes, ranks);
        let (signature, name): (Arc<str>, Arc<str>) = (signature.into(), name.into());
        let of = array.map(|array| (array.dtype(), array.layout().shape.to_vec()));
        *last =
            Some(Described { verb: verb.to_owned(), of, signature: Arc::clone(&signature), name: Arc::clone(&name) });
        (signature, name)
    }
}

/// A reduction that MPI carries out as it is: in words, and by its handles.
struct Plain {
    reduction: String,
    dtype: DType,
    verb: String,
    datatype: usize,
    op: usize,
}

impl Plain {
    fn is_of(&self, reduction: &str, dtype: DType) -> bool {
        self.dtype == dtype && self.reduction == reduction
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
