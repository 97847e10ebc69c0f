//! Short ways for arrays made of few numbers: ranges, spaced numbers, diagonals. Their elements equal NumPy's, bit for
//! bit. They answer None, for the long way, to rare and refused calls, and while this thread records.

use crate::array::{NDArray, numpy, raised};
use crate::engine::Engine;
use crate::interpreter::dtypes;
use crate::interpreter::errors;
use crate::pushes::here::is_cheap;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt};
use weft_array::{Array, DType, Scalar, recording};

/// Picoseconds for a byte of a result, about.
const EFFORT: usize = 244;
/// Up to where a double holds all integers.
const EXACT: i64 = 1 << 53;

/// A number, an integer or not, as Python distinguishes them.
#[derive(Clone, Copy)]
enum Number {
    Whole(i64),
    Real(f64),
}

impl Number {
    fn of(number: &Bound<'_, PyAny>) -> Option<Self> {
        if let Ok(number) = number.cast_exact::<PyFloat>() {
            return Some(Self::Real(number.value()));
        }
        let whole = number.cast_exact::<PyInt>().ok()?.extract::<i64>().ok()?;
        (whole.unsigned_abs() < EXACT.unsigned_abs()).then_some(Self::Whole(whole))
    }

    #[allow(clippy::cast_precision_loss)] // none is lost: see `EXACT`
    fn real(self) -> f64 {
        match self {
            Self::Whole(whole) => whole as f64,
            Self::Real(real) => real,
        }
    }

    /// The sum by Python's rules.
    fn plus(self, other: Self) -> Self {
        match (self, other) {
            (Self::Whole(one), Self::Whole(other)) => Self::Whole(one + other),
            _ => Self::Real(self.real() + other.real()),
        }
    }

    /// As an element; None if it is out of range, because NumPy may warn of the overflow.
    fn bytes(self, dtype: DType) -> Option<[u8; 16]> {
        match self {
            Self::Whole(whole) => Scalar::Int(whole),
            Self::Real(real) => Scalar::Float(real),
        }
        .bytes(dtype)
    }
}

/// A new array on the first device, and the address of its elements.
fn made(py: Python<'_>, shape: &[usize], dtype: DType, engine: &Engine) -> PyResult<Option<(Array, *mut u8)>> {
    let bytes = shape.iter().try_fold(dtype.size(), |bytes, length| bytes.checked_mul(*length));
    if recording::is_open() || engine.inner.is_closed() || bytes.is_none_or(|bytes| !is_cheap(bytes, EFFORT)) {
        return Ok(None);
    }
    let array = Array::empty(&engine.inner, shape, dtype).map_err(|error| raised(py, error))?;
    array.set_device(0);
    let start = array.buffer().start().map_err(|cause| errors::out_of_memory(py, &cause.to_string()))?;
    Ok(Some((array, start)))
}

/// The length of a range; None if it is not a possible length.
fn length(start: Number, end: Number, step: Number) -> Option<usize> {
    let extent = match (start, end) {
        (Number::Whole(start), Number::Whole(end)) => {
            let extent = end - start;
            if extent.unsigned_abs() >= EXACT.unsigned_abs() {
                return None;
            }
            Number::Whole(extent).real()
        }
        _ => end.real() - start.real(),
    };
    let count = (extent / step.real()).ceil();
    let underflows = count == 0.0 && extent != 0.0; // the range may have an element all the same
    if step.real() == 0.0 || !count.is_finite() || underflows {
        return None;
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // `made` refuses lengths that are too long
    Some(count.max(0.0) as usize)
}

/// `arange` of integers and floats, for the dtypes of most ranges.
#[pyfunction]
pub(crate) fn fresh_range(
    start: &Bound<'_, PyAny>,
    end: &Bound<'_, PyAny>,
    step: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    engine: &Bound<'_, Engine>,
) -> PyResult<Option<NDArray>> {
    let py = engine.py();
    let (Some(start), Some(end), Some(step)) = (Number::of(start), Number::of(end), Number::of(step)) else {
        return Ok(None);
    };
    let whole = [start, end, step].iter().all(|number| matches!(number, Number::Whole(_)));
    let dtype = match dtype {
        None => Some(if whole { DType::Int64 } else { DType::Float64 }),
        Some(dtype) => dtypes::known_as(dtype)?,
    };
    let is_usual = |dtype: &DType| match dtype {
        DType::Float32 | DType::Float64 => true,
        DType::Bool | DType::Float16 | DType::Complex64 | DType::Complex128 => false,
        _ => whole,
    };
    let Some(dtype) = dtype.filter(is_usual) else { return Ok(None) };
    let Some(count) = length(start, end, step) else { return Ok(None) };
    let firsts = [start, start.plus(step)].map(|number| number.bytes(dtype));
    let ([Some(first), Some(second)], Some(functions)) = (firsts, numpy::functions_of(py, dtype)?) else {
        return Ok(None);
    };
    let Some(fill) = functions.fill else { return Ok(None) };
    let Some((array, target)) = made(py, &[count], dtype, engine.get())? else { return Ok(None) };
    let size = dtype.size();
    for (at, element) in [first, second].iter().enumerate().take(count) {
        // SAFETY: the array has room for this many elements, and no other user yet.
        unsafe { target.add(at * size).copy_from_nonoverlapping(element.as_ptr(), size) };
    }
    if count > 2 {
        // SAFETY: as above; the first two elements are set, and NumPy's function for numbers reads nothing else.
        unsafe { fill(target, count.cast_signed(), std::ptr::null_mut()) };
    }
    Ok(Some(NDArray::new(array, engine.clone().unbind())))
}

/// `linspace` of real numbers, for the two usual dtypes.
#[pyfunction]
pub(crate) fn fresh_spaced(
    start: &Bound<'_, PyAny>,
    end: &Bound<'_, PyAny>,
    count: &Bound<'_, PyAny>,
    endpoint: bool,
    dtype: Option<&Bound<'_, PyAny>>,
    engine: &Bound<'_, Engine>,
) -> PyResult<Option<NDArray>> {
    let (Some(start), Some(end)) = (Number::of(start), Number::of(end)) else { return Ok(None) };
    let Ok(count) = count.extract::<usize>() else { return Ok(None) };
    let dtype = dtype.map_or(Ok(Some(DType::Float64)), dtypes::known_as)?;
    let Some(dtype) = dtype.filter(|dtype| matches!(dtype, DType::Float32 | DType::Float64)) else { return Ok(None) };
    let (start, end) = (start.real(), end.real());
    let Some((array, target)) = made(engine.py(), &[count], dtype, engine.get())? else { return Ok(None) };
    #[allow(clippy::cast_precision_loss)] // none is lost: the count is small
    let parts = if endpoint { count.saturating_sub(1) } else { count } as f64;
    let (extent, size) = (end - start, dtype.size());
    let step = extent / parts;
    for at in 0..count {
        #[allow(clippy::cast_precision_loss)] // as above
        let place = at as f64;
        // NumPy's order of operations, with as many roundings. If the step underflows to zero, the parts come first.
        let along = match () {
            () if parts == 0.0 => place * extent,
            () if step == 0.0 => place / parts * extent,
            () => place * step,
        };
        let value = if endpoint && count > 1 && at == count - 1 { end } else { along + start };
        let Some(element) = Number::Real(value).bytes(dtype) else { return Ok(None) };
        // SAFETY: the array has room for this many elements, and no other user yet.
        unsafe { target.add(at * size).copy_from_nonoverlapping(element.as_ptr(), size) };
    }
    Ok(Some(NDArray::new(array, engine.clone().unbind())))
}

/// A matrix with ones on one diagonal and zeros elsewhere.
#[pyfunction]
pub(crate) fn fresh_diagonal(
    shape: &Bound<'_, PyAny>,
    diagonal: &Bound<'_, PyAny>,
    dtype: &Bound<'_, PyAny>,
    engine: &Bound<'_, Engine>,
) -> PyResult<Option<NDArray>> {
    let (Ok((rows, columns)), Ok(diagonal)) = (shape.extract::<(usize, usize)>(), diagonal.extract::<isize>()) else {
        return Ok(None);
    };
    let Some(dtype) = dtypes::known_as(dtype)? else { return Ok(None) };
    let one = if dtype == DType::Bool { Scalar::Bool(true) } else { Scalar::Int(1) };
    let Some(one) = one.bytes(dtype) else { return Ok(None) };
    let Some((array, target)) = made(engine.py(), &[rows, columns], dtype, engine.get())? else { return Ok(None) };
    // SAFETY: a new array has this many bytes and no other user yet; zeros are elements of every dtype.
    unsafe { target.write_bytes(0, array.bytes()) };
    for row in 0..rows {
        let column = row.cast_signed().checked_add(diagonal).and_then(|column| usize::try_from(column).ok());
        if let Some(column) = column.filter(|column| *column < columns) {
            let at = (row * columns + column) * dtype.size();
            // SAFETY: as above; the place is inside.
            unsafe { target.add(at).copy_from_nonoverlapping(one.as_ptr(), dtype.size()) };
        }
    }
    Ok(Some(NDArray::new(array, engine.clone().unbind())))
}
