//! Operators on arrays: straight to a loop if one is known, otherwise through Python.

use super::on_device;
use super::walk::{cast_for, operated};
use crate::array::moves::{elsewhere, instead};
use crate::array::operator::{OPERATORS, Operator, scalar};
use crate::array::{NDArray, raised};
use crate::cuda::elementwise::CudaLoop;
use crate::hearing::short;
use crate::pushes::Loop;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyInt;
use std::sync::OnceLock;
use weft_array::{
    Array, ArrayError, DType, Operand, Scalar, StridedLoop, broadcast_shapes, push_elementwise, recording,
};
use weft_engine::PushOptions;

struct Fast {
    kernel: StridedLoop,
    name: String,
    result: DType,
    /// Knows the same computation on devices.
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
/// Operators whose op a user computes: the tables' loops, or kernels, no longer serve them.
static REPLACED: [[OnceLock<()>; OPERATORS]; 2] = [const { [const { OnceLock::new() }; OPERATORS] }; 2];
const ON_HOST: usize = 0;
const ON_DEVICE: usize = 1;
static DISPATCH: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Sets the function for operators without a cached loop: ``hook(name, left, right)``.
#[pyfunction]
pub(crate) fn set_dispatch(hook: Bound<'_, PyAny>) -> PyResult<()> {
    let py = hook.py();
    DISPATCH.set(py, hook.unbind()).map_err(|_| PyRuntimeError::new_err("there is a dispatch hook already"))
}

/// Lets an operator on arrays of this dtype use a loop with results of the dtype `result`.
pub(crate) fn enter_loop(operator: usize, dtype: DType, result: DType, of: &Bound<'_, Loop>) {
    // A second one has named the same loop.
    let _ = LOOPS[operator][dtype as usize].set(Fast {
        kernel: of.get().kernel,
        name: of.get().name.clone(),
        result,
        of: of.clone().unbind(),
    });
}

/// Leaves an operator on this kind of device to the op's walk, permanently.
pub(super) fn forget_loops(operator: usize, kind: &str) {
    match kind {
        "cpu" => REPLACED[ON_HOST][operator].get_or_init(|| ()),
        "cuda" => REPLACED[ON_DEVICE][operator].get_or_init(|| ()),
        _ => &(), // no loop serves other kinds
    };
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

/// The kernels for operands on devices, all of this dtype, if the operator's loop is known.
#[inline]
pub(crate) fn kernels(py: Python<'_>, operator: Operator, dtype: DType) -> PyResult<Option<&'static Py<CudaLoop>>> {
    match LOOPS[operator as usize][dtype as usize].get() {
        Some(fast) => fast.of.get().cuda(py),
        None => Ok(None),
    }
}

/// `left (operator) right`, with `array` one of the two.
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
        // A product has no element-wise loop.
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
    let (left, right) = if reflected { (other, array.as_any()) } else { (array.as_any(), other) };
    if let Some(result) = operated(operator, [left, right])? {
        return Ok(result.into_any().unbind());
    }
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
        // The tape has to be asked first; a product has no element-wise loop.
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
    } else if let Some(other) = cast_for(array, other, operator)? {
        return in_place(array, other.as_any(), operator);
    }
    let answer = dispatch(py, operator.name(true), array.as_any(), Some(other))?;
    if answer.is(array) {
        return Ok(());
    }
    // Python would bind the name to another object.
    Err(PyRuntimeError::new_err("an in-place operator has made another array"))
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

/// Whether the tape may know an operand.
#[inline]
fn is_known(own: &NDArray, other: &Bound<'_, PyAny>) -> bool {
    own.tape.is_known() || other.cast::<NDArray>().is_ok_and(|other| other.get().tape.is_known())
}

/// Tells the tape of a pushed operator.
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

    /// A new array for the result; None if the shapes do not broadcast.
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
