//! Operators on arrays on a device: from the type slot to the launch without Python, where the kernels are known.
//! Uncommon calls, and errors among them, are left to Python.

use super::operators;
use crate::array::operator::{OPERATORS, Operator, number_of, scalar};
use crate::array::{NDArray, raised};
use crate::cuda::elementwise::CudaLoop;
use crate::cuda::memory::{fresh, memory_of};
use crate::interpreter::dtypes;
use pyo3::prelude::*;
use std::borrow::Cow;
use std::sync::OnceLock;
use weft_array::{DType, Scalar, broadcast_shapes};
use weft_device::ElementwiseOperand as Operand;

type Row = [OnceLock<Py<CudaLoop>>; DType::COUNT];

/// Kernels for operands of two dtypes. Those for one dtype belong to the CPU's loops.
static MIXED: [[Row; DType::COUNT]; OPERATORS] =
    [const { [const { [const { OnceLock::new() }; DType::COUNT] }; DType::COUNT] }; OPERATORS];

/// Lets operator `name` on arrays of these two dtypes on a device use the kernels of `loop`.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // extracted from a tuple
pub(crate) fn cache_cuda_loop(
    name: &str,
    dtypes: (Bound<'_, PyAny>, Bound<'_, PyAny>),
    r#loop: Py<CudaLoop>,
) -> PyResult<()> {
    let (left, right) = (dtypes::from_python(&dtypes.0)?, dtypes::from_python(&dtypes.1)?);
    // A second caller has named the same kernels.
    let _ = MIXED[number_of(name)?][left as usize][right as usize].set(r#loop);
    Ok(())
}

#[inline]
fn kernels(py: Python<'_>, operator: Operator, left: DType, right: DType) -> PyResult<Option<&CudaLoop>> {
    let found = if left == right {
        operators::kernels(py, operator, left)?
    } else {
        MIXED[operator as usize][left as usize][right as usize].get()
    };
    Ok(found.map(Py::get))
}

/// The other operand.
enum Other<'a> {
    Array(&'a NDArray),
    Scalar(Scalar),
}

impl<'a> Other<'a> {
    /// An array of the same engine and device, or a number that takes the array's dtype.
    #[inline]
    fn of(own: &NDArray, other: &'a Bound<'_, PyAny>) -> Option<Self> {
        let Ok(array) = other.cast::<NDArray>() else {
            return scalar(other, own.inner.dtype()).map(Self::Scalar);
        };
        let array = array.get();
        let fits = !array.tape.is_moved()
            && array.owner().get().inner.is_same(&own.owner().get().inner)
            && memory_of(&array.inner)?.device() == memory_of(&own.inner)?.device();
        fits.then_some(Self::Array(array))
    }

    #[inline]
    fn dtype(&self, own: DType) -> DType {
        if let Self::Array(array) = self { array.inner.dtype() } else { own }
    }

    #[inline]
    fn shape<'b>(&self, own: &'b [usize]) -> Option<Cow<'b, [usize]>> {
        match self {
            Self::Array(array) if *array.inner.layout().shape != *own => {
                broadcast_shapes(own, &array.inner.layout().shape).map(|shape| Cow::Owned(shape.into_vec()))
            }
            _ => Some(Cow::Borrowed(own)),
        }
    }

    #[inline]
    fn operand(&self) -> Operand<'a> {
        match self {
            Self::Array(array) => Operand::Array(&array.inner),
            Self::Scalar(scalar) => Operand::Scalar(*scalar),
        }
    }
}

/// Pushes a launch that fills a new array.
#[inline]
fn filled(
    py: Python<'_>,
    own: &NDArray,
    kernels: &CudaLoop,
    shape: &[usize],
    operands: &[Operand<'_>],
) -> PyResult<Option<Py<NDArray>>> {
    let Some(memory) = memory_of(&own.inner) else { return Ok(None) };
    let engine = own.owner().get();
    let output = fresh(&engine.inner, memory.device(), shape, kernels.result()).map_err(|error| raised(py, error))?;
    engine.wait_for_room(py, output.bytes() as u64)?;
    kernels.push(py, &[&output], operands)?;
    Py::new(py, NDArray::new(output, own.owner().clone_ref(py))).map(Some)
}

/// `left (operator) right`, with `array` one of the two and on a device. None if Python has to compute it.
#[inline]
pub(crate) fn binary(
    array: &Bound<'_, NDArray>,
    other: &Bound<'_, PyAny>,
    operator: Operator,
    reflected: bool,
) -> PyResult<Option<Py<NDArray>>> {
    let (py, own) = (array.py(), array.get());
    let (Some(_), Some(other)) = (memory_of(&own.inner), Other::of(own, other)) else { return Ok(None) };
    let (first, second) = (own.inner.dtype(), other.dtype(own.inner.dtype()));
    let (left, right) = if reflected { (second, first) } else { (first, second) };
    let Some(kernels) = kernels(py, operator, left, right)? else { return Ok(None) };
    let Some(shape) = other.shape(&own.inner.layout().shape) else { return Ok(None) };
    let (first, second) = (Operand::Array(&own.inner), other.operand());
    let operands = if reflected { [second, first] } else { [first, second] };
    filled(py, own, kernels, &shape, &operands)
}

/// `array (operator)= other`. False: Python has to compute it.
#[inline]
pub(crate) fn in_place(array: &Bound<'_, NDArray>, other: &Bound<'_, PyAny>, operator: Operator) -> PyResult<bool> {
    let (py, own) = (array.py(), array.get());
    let dtype = own.inner.dtype();
    let (Some(_), Some(other)) = (memory_of(&own.inner), Other::of(own, other)) else { return Ok(false) };
    let Some(kernels) = kernels(py, operator, dtype, other.dtype(dtype))? else { return Ok(false) };
    let shape = &*own.inner.layout().shape;
    if kernels.result() != dtype || other.shape(shape).is_none_or(|broadcast| *broadcast != *shape) {
        return Ok(false);
    }
    own.owner().get().wait_for_room(py, own.inner.bytes() as u64)?;
    kernels.push(py, &[&own.inner], &[Operand::Array(&own.inner), other.operand()])?;
    Ok(true)
}

/// `(operator) array`. None if Python has to compute it.
#[inline]
pub(crate) fn unary(array: &Bound<'_, NDArray>, operator: Operator) -> PyResult<Option<Py<NDArray>>> {
    let (py, own) = (array.py(), array.get());
    let dtype = own.inner.dtype();
    if memory_of(&own.inner).is_none() {
        return Ok(None); // a kind of device that Python defines
    }
    let Some(kernels) = kernels(py, operator, dtype, dtype)? else { return Ok(None) };
    filled(py, own, kernels, &own.inner.layout().shape, &[Operand::Array(&own.inner)])
}
