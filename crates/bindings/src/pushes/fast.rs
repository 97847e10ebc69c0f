//! Operators on arrays: straight to a loop where one was named, otherwise through Python.

use super::fresh::fresh_product;
use super::on_device;
use super::strided::Loop;
use crate::array::operator::{OPERATORS, Operator, number_of, scalar};
use crate::array::tape::moves::{elsewhere, instead};
use crate::array::tape::short;
use crate::array::{NDArray, raised};
use crate::cuda::elementwise::CudaLoop;
use crate::interpreter::dtypes;
use crate::payloads::trace;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyInt, PyTuple};
use smallvec::SmallVec;
use std::sync::OnceLock;
use weft_array::{
    Array, ArrayError, DType, Operand, Scalar, StridedLoop, broadcast_shapes, cast_loop, is_cast_apart,
    push_elementwise, recording,
};
use weft_engine::PushOptions;
use weft_engine::trace::Kind;

struct Fast {
    kernel: StridedLoop,
    name: String,
    result: DType,
    /// Knows what computes the same on devices.
    of: Py<Loop>,
}

impl Fast {
    fn options(&self, py: Python<'_>, output: &Array) -> PushOptions<'_> {
        Loop::options(py, output, &self.name)
    }
}

/// Loops of operators on arrays of one dtype.
static LOOPS: [[OnceLock<Fast>; DType::COUNT]; OPERATORS] =
    [const { [const { OnceLock::new() }; DType::COUNT] }; OPERATORS];
/// Operators whose op a user computes: no loop, or no kernel, of the tables serves them any more.
static REPLACED: [[OnceLock<()>; OPERATORS]; 2] = [const { [const { OnceLock::new() }; OPERATORS] }; 2];
const ON_HOST: usize = 0;
const ON_DEVICE: usize = 1;
static DISPATCH: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Names the function that computes what no cached loop does: ``hook(name, left, right)``.
#[pyfunction]
pub(crate) fn set_dispatch(hook: Bound<'_, PyAny>) -> PyResult<()> {
    let py = hook.py();
    DISPATCH.set(py, hook.unbind()).map_err(|_| PyRuntimeError::new_err("there is a dispatch hook already"))
}

/// Lets operator `name` on arrays of these dtypes, all the same, use `loop`, whose result has the dtype `result`.
#[pyfunction]
pub(crate) fn cache_loop(
    name: &str,
    dtypes: &Bound<'_, PyTuple>,
    r#loop: &Bound<'_, Loop>,
    result: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let at = number_of(name)?;
    let operands: SmallVec<[DType; 2]> =
        dtypes.iter().map(|dtype| dtypes::from_python(&dtype)).collect::<PyResult<_>>()?;
    let result = dtypes::from_python(result)?;
    let wanted: SmallVec<[DType; 3]> = operands.iter().copied().chain([result]).collect();
    if wanted != r#loop.get().dtypes {
        return Err(PyValueError::new_err("the loop is for other dtypes"));
    }
    if let Some(first) = operands.first()
        && operands.iter().all(|operand| operand == first)
    {
        // Who comes second has named the same loop.
        let _ = LOOPS[at][*first as usize].set(Fast {
            kernel: r#loop.get().kernel,
            name: r#loop.get().name.clone(),
            result,
            of: r#loop.clone().unbind(),
        });
    }
    Ok(())
}

/// Leaves operator `name` on this kind of device to the dispatch hook, for good.
#[pyfunction]
pub(crate) fn forget_loops(name: &str, kind: &str) -> PyResult<()> {
    let at = number_of(name)?;
    match kind {
        "cpu" => REPLACED[ON_HOST][at].get_or_init(|| ()),
        "cuda" => REPLACED[ON_DEVICE][at].get_or_init(|| ()),
        _ => &(), // no loop serves other kinds
    };
    Ok(())
}

#[inline]
fn is_replaced(kind: usize, operator: Operator) -> bool {
    REPLACED[kind][operator as usize].get().is_some()
}

/// The loop for operands in the host's memory.
#[inline]
fn cached(operator: Operator, dtype: DType) -> Option<&'static Fast> {
    LOOPS[operator as usize][dtype as usize].get().filter(|_| !is_replaced(ON_HOST, operator))
}

/// The kernels for operands on devices that are all of this dtype, if the operator's loop is known.
#[inline]
pub(crate) fn kernels(py: Python<'_>, operator: Operator, dtype: DType) -> PyResult<Option<&'static Py<CudaLoop>>> {
    match LOOPS[operator as usize][dtype as usize].get() {
        Some(fast) => fast.of.get().cuda(py),
        None => Ok(None),
    }
}

/// `left (operator) right`, where one of the two, `array`, is an array.
#[inline]
pub(crate) fn binary<'py>(
    array: &Bound<'py, NDArray>,
    other: &Bound<'py, PyAny>,
    operator: Operator,
    reflected: bool,
) -> PyResult<Py<PyAny>> {
    let (py, own) = (array.py(), array.get());
    if let Some(done) = instead(array, |now| binary(now, other, operator, reflected)) {
        return done;
    }
    let dtype = own.inner.dtype();
    if operator == Operator::Matmul {
        // No loop over elements, but a product.
        if let Some(fast) = cached(operator, dtype)
            && let Ok(other) = other.cast_exact::<NDArray>()
            && let (left, right) = if reflected { (other, array) } else { (array, other) }
            && let Some(result) = fresh_product(fast.of.bind(py), left, right)?
        {
            return Ok(result.into_any());
        }
    } else if own.inner.buffer().is_elsewhere() {
        if !is_replaced(ON_DEVICE, operator)
            && let Some(result) = on_device::binary(array, other, operator, reflected)?
        {
            heard(array, Some(other), operator, reflected, &result)?;
            return Ok(result.into_any());
        }
    } else if operator == Operator::Pow
        && !reflected
        && is_square(own, other)
        && let Some(fast) = cached(Operator::Multiply, dtype)
    {
        let output = Array::like(&own.inner, fast.result).map_err(|error| raised(py, error))?;
        Operands::Array(array).push(py, fast, &output, own, false)?;
        let result = Py::new(py, NDArray::new(output, own.owner().clone_ref(py)))?;
        if own.tape.is_known() {
            short::note_square(array, &result)?;
        }
        return Ok(result.into_any());
    } else if let Some(fast) = cached(operator, dtype) {
        let operands = Operands::of(own, other, dtype);
        if let Some(operands) = operands
            && let Some(output) = operands.output(own, fast.result)
        {
            let output = output.map_err(|error| raised(py, error))?;
            operands.push(py, fast, &output, own, reflected)?;
            let result = Py::new(py, NDArray::new(output, own.owner().clone_ref(py)))?;
            heard(array, Some(other), operator, reflected, &result)?;
            return Ok(result.into_any());
        }
    }
    if let Some(now) = elsewhere(other) {
        return binary(array, &now, operator, reflected);
    }
    if let Some((common, other)) = mixed(array, other, operator)? {
        let array = in_common(array, common)?;
        return binary(&array, in_common(other, common)?.as_any(), operator, reflected);
    }
    let (left, right) = if reflected { (other, array.as_any()) } else { (array.as_any(), other) };
    dispatch(py, operator.name(false), left, Some(right))
}

/// Whether `array ** other` is the array's product with itself. The tape hears it as the square.
fn is_square(own: &NDArray, other: &Bound<'_, PyAny>) -> bool {
    let dtype = own.inner.dtype();
    !matches!(dtype, DType::Bool | DType::Complex64 | DType::Complex128)
        && other.cast_exact::<PyInt>().is_ok_and(|number| number.extract::<i64>().is_ok_and(|number| number == 2))
        && !is_replaced(ON_HOST, Operator::Pow)
        && !recording::is_open()
}

/// `array (operator)= other`.
#[inline]
pub(crate) fn in_place<'py>(
    array: &Bound<'py, NDArray>,
    other: &Bound<'py, PyAny>,
    operator: Operator,
) -> PyResult<()> {
    let (py, own) = (array.py(), array.get());
    if let Some(done) = instead(array, |now| in_place(now, other, operator)) {
        return done;
    }
    let dtype = own.inner.dtype();
    if is_known(own, other) || operator == Operator::Matmul {
        // The tape wants to be asked before; a product is no loop over elements.
    } else if own.inner.buffer().is_elsewhere() {
        if !is_replaced(ON_DEVICE, operator) && on_device::in_place(array, other, operator)? {
            return Ok(());
        }
    } else if let Some(fast) = cached(operator, dtype)
        && fast.result == dtype
        && let Some(operands) = Operands::of(own, other, dtype)
        && operands.fit_into(own)
    {
        return operands.push(py, fast, &own.inner, own, false);
    } else if let Some((common, other)) = mixed(array, other, operator)?
        && common == dtype
    {
        return in_place(array, in_common(other, common)?.as_any(), operator);
    }
    let answer = dispatch(py, operator.name(true), array.as_any(), Some(other))?;
    if answer.is(array) {
        return Ok(());
    }
    // Python would bind the name to something else.
    Err(PyRuntimeError::new_err("an in-place operator has made another array"))
}

/// The dtype in which an operator takes two small arrays of other dtypes, and the second one; nothing where the long way is to be
/// gone: somebody records, listens or traces, or the operator has no loop.
#[inline]
fn mixed<'a, 'py>(
    array: &Bound<'py, NDArray>,
    other: &'a Bound<'py, PyAny>,
    operator: Operator,
) -> PyResult<Option<(DType, &'a Bound<'py, NDArray>)>> {
    let Ok(other) = other.cast_exact::<NDArray>() else { return Ok(None) };
    let (left, right) = (array.get(), other.get());
    let dtypes = [left.inner.dtype(), right.inner.dtype()];
    let engine = &left.owner().get().inner;
    let small = |side: &NDArray| {
        side.inner.buffer().is_host() && !side.tape.is_known() && is_cast_apart(side.inner.layout().size())
    };
    let shortly = dtypes[0] != dtypes[1] && small(left) && small(right) && engine.is_same(&right.owner().get().inner);
    if !shortly || operator == Operator::Matmul || recording::is_open() || engine.is_observed() {
        return Ok(None);
    }
    let common = common(array.py(), dtypes)?;
    // int64 and uint64 have none that is exact: NumPy compares them as they are.
    let exact = |common: &DType| !common.is_floating() || dtypes.iter().any(|dtype| dtype.is_floating());
    let casts = |common: &DType| dtypes.iter().all(|dtype| dtype == common || cast_loop(*dtype, *common).is_some());
    Ok(common
        .filter(|common| exact(common) && casts(common) && cached(operator, *common).is_some())
        .map(|common| (common, other)))
}

/// The dtype to which NumPy promotes two.
fn common(py: Python<'_>, [one, other]: [DType; 2]) -> PyResult<Option<DType>> {
    static COMMON: [[PyOnceLock<Option<DType>>; DType::COUNT]; DType::COUNT] =
        [const { [const { PyOnceLock::new() }; DType::COUNT] }; DType::COUNT];
    let found = COMMON[one as usize][other as usize].get_or_try_init(py, || {
        let given = (dtypes::to_python(py, one)?, dtypes::to_python(py, other)?);
        let promoted = py.import("numpy")?.getattr("promote_types")?.call1(given)?;
        PyResult::Ok(dtypes::from_python(&promoted).ok())
    });
    found.copied()
}

/// A small array as it is, if it has this dtype, or cast to it.
fn in_common<'py>(array: &Bound<'py, NDArray>, dtype: DType) -> PyResult<Bound<'py, NDArray>> {
    let (py, own) = (array.py(), array.get());
    let from = own.inner.dtype();
    let Some(kernel) = cast_loop(from, dtype).filter(|_| from != dtype) else { return Ok(array.clone()) };
    let output =
        Array::empty(own.inner.engine(), &own.inner.layout().shape, dtype).map_err(|error| raised(py, error))?;
    own.owner().get().wait_for_room(py, output.bytes() as u64)?;
    let note = trace::of_arrays(py, output.engine(), Kind::Compute, "astype");
    let options = PushOptions { note, ..PushOptions::default() };
    push_elementwise(kernel, &[&output], &[Operand::Array(&own.inner)], options).map_err(|error| raised(py, error))?;
    Bound::new(py, NDArray::new(output, own.owner().clone_ref(py)))
}

/// `(operator) array`.
#[inline]
pub(crate) fn unary(array: &Bound<'_, NDArray>, operator: Operator) -> PyResult<Py<PyAny>> {
    let (py, own) = (array.py(), array.get());
    if let Some(done) = instead(array, |now| unary(now, operator)) {
        return done;
    }
    if own.inner.buffer().is_elsewhere() {
        if !is_replaced(ON_DEVICE, operator)
            && let Some(result) = on_device::unary(array, operator)?
        {
            heard(array, None, operator, false, &result)?;
            return Ok(result.into_any());
        }
    } else if let Some(fast) = cached(operator, own.inner.dtype()) {
        let output = Array::like(&own.inner, fast.result).map_err(|error| raised(py, error))?;
        own.owner().get().wait_for_room(py, output.bytes() as u64)?;
        push_elementwise(fast.kernel, &[&output], &[Operand::Array(&own.inner)], fast.options(py, &output))
            .map_err(|error| raised(py, error))?;
        let result = Py::new(py, NDArray::new(output, own.owner().clone_ref(py)))?;
        heard(array, None, operator, false, &result)?;
        return Ok(result.into_any());
    }
    dispatch(py, operator.name(false), array.as_any(), None)
}

/// Whether the tape may know something of an operand.
#[inline]
fn is_known(own: &NDArray, other: &Bound<'_, PyAny>) -> bool {
    own.tape.is_known() || other.cast::<NDArray>().is_ok_and(|other| other.get().tape.is_known())
}

/// Lets the tape hear of an operator that was pushed.
#[inline]
fn heard(
    array: &Bound<'_, NDArray>,
    other: Option<&Bound<'_, PyAny>>,
    operator: Operator,
    reflected: bool,
    result: &Py<NDArray>,
) -> PyResult<()> {
    if !array.get().tape.is_known()
        && !other.is_some_and(|other| other.cast::<NDArray>().is_ok_and(|other| other.get().tape.is_known()))
    {
        return Ok(());
    }
    let own = Some(array.as_any());
    short::note_operator(array.py(), operator, if reflected { [other, own] } else { [own, other] }, result)
}

/// The other operand of an operator.
enum Operands<'a, 'py> {
    Array(&'a Bound<'py, NDArray>),
    Scalar(Scalar, DType),
}

impl<'a, 'py> Operands<'a, 'py> {
    #[inline]
    fn of(own: &NDArray, other: &'a Bound<'py, PyAny>, dtype: DType) -> Option<Self> {
        if let Ok(array) = other.cast::<NDArray>() {
            let other = array.get();
            let fits = other.inner.dtype() == dtype
                && other.owner().get().inner.is_same(&own.owner().get().inner)
                && !other.tape.is_moved();
            return fits.then_some(Self::Array(array));
        }
        scalar(other, dtype).map(|scalar| Self::Scalar(scalar, dtype))
    }

    /// An array for the result; nothing if there is no shape for it.
    #[inline]
    fn output(&self, own: &NDArray, result: DType) -> Option<Result<Array, ArrayError>> {
        let own = &own.inner;
        match self {
            Self::Array(array) if !array.get().inner.layout().is_shaped_like(own.layout()) => {
                let shape = broadcast_shapes(&own.layout().shape, &array.get().inner.layout().shape)?;
                Some(Array::empty(own.engine(), &shape, result))
            }
            _ => Some(Array::like(own, result)),
        }
    }

    /// Whether the result has the array's own shape.
    #[inline]
    fn fit_into(&self, own: &NDArray) -> bool {
        let Self::Array(array) = self else { return true };
        let (own, other) = (own.inner.layout(), array.get().inner.layout());
        other.is_shaped_like(own) || broadcast_shapes(&own.shape, &other.shape).is_some_and(|shape| shape == own.shape)
    }

    #[inline]
    fn push(&self, py: Python<'_>, fast: &Fast, output: &Array, own: &NDArray, reflected: bool) -> PyResult<()> {
        own.owner().get().wait_for_room(py, output.bytes() as u64)?;
        let own = Operand::Array(&own.inner);
        let other = match self {
            Self::Array(array) => Operand::Array(&array.get().inner),
            Self::Scalar(scalar, dtype) => Operand::Scalar(*scalar, *dtype),
        };
        let operands = if reflected { [other, own] } else { [own, other] };
        push_elementwise(fast.kernel, &[output], &operands, fast.options(py, output)).map_err(|error| raised(py, error))
    }
}

#[cold]
fn dispatch(
    py: Python<'_>,
    name: &str,
    left: &Bound<'_, PyAny>,
    right: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<PyAny>> {
    match DISPATCH.get(py) {
        Some(hook) => hook.call1(py, (name, left, right)),
        None => Ok(py.NotImplemented()),
    }
}
