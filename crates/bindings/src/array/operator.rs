//! Operators, and their operands.

use crate::interpreter::dtypes;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt};
use weft_array::{DType, Scalar};

/// Operators, by the names of the array API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    FloorDivide,
    Remainder,
    Pow,
    Matmul,
    BitwiseAnd,
    BitwiseOr,
    BitwiseXor,
    BitwiseLeftShift,
    BitwiseRightShift,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Equal,
    NotEqual,
    Negative,
    Positive,
    Abs,
    BitwiseInvert,
}

/// The number of operators.
pub(crate) const OPERATORS: usize = 23;

/// In the order of the operators; the in-place ones have an "i" in front.
const NAMES: [&str; OPERATORS] = [
    "iadd",
    "isubtract",
    "imultiply",
    "idivide",
    "ifloor_divide",
    "iremainder",
    "ipow",
    "imatmul",
    "ibitwise_and",
    "ibitwise_or",
    "ibitwise_xor",
    "ibitwise_left_shift",
    "ibitwise_right_shift",
    "iless",
    "iless_equal",
    "igreater",
    "igreater_equal",
    "iequal",
    "inot_equal",
    "inegative",
    "ipositive",
    "iabs",
    "ibitwise_invert",
];

impl Operator {
    pub(crate) fn name(self, in_place: bool) -> &'static str {
        let name = NAMES[self as usize];
        if in_place { name } else { &name[1..] }
    }
}

/// The number of the operator with this name.
pub(crate) fn number_of(name: &str) -> PyResult<usize> {
    let found = NAMES.iter().position(|known| known[1..] == *name);
    found.ok_or_else(|| PyValueError::new_err(format!("no operator is called {name}")))
}

/// A Python number as an operand of this dtype, if NumPy would convert it so.
#[inline]
pub(crate) fn scalar(number: &Bound<'_, PyAny>, dtype: DType) -> Option<Scalar> {
    let scalar = if let Ok(number) = number.cast_exact::<PyFloat>() {
        Scalar::Float(number.value())
    } else if let Ok(number) = number.cast_exact::<PyInt>() {
        match number.extract::<i64>() {
            Ok(number) => Scalar::Int(number),
            Err(_) => Scalar::UInt(number.extract().ok()?),
        }
    } else if let Ok(number) = number.cast_exact::<PyBool>() {
        Scalar::Bool(number.is_true())
    } else if let Ok(number) = number.cast_exact::<PyComplex>() {
        Scalar::Complex(number.getattr("real").ok()?.extract().ok()?, number.getattr("imag").ok()?.extract().ok()?)
    } else {
        of_numpy(number, dtype)?
    };
    scalar.fits(dtype).then_some(scalar)
}

/// A NumPy scalar of this very type. One of another type decides the result's, and is treated as an array.
#[inline]
fn of_numpy(value: &Bound<'_, PyAny>, dtype: DType) -> Option<Scalar> {
    if !value.get_type().is(dtypes::scalar_type(value.py(), dtype).ok()?) {
        return None;
    }
    match dtype {
        DType::Float16 | DType::Float32 | DType::Float64 => value.extract().ok().map(Scalar::Float),
        DType::UInt64 => value.extract().ok().map(Scalar::UInt),
        DType::Bool => value.is_truthy().ok().map(Scalar::Bool),
        DType::Complex64 | DType::Complex128 => {
            let part = |name| value.getattr(name).ok()?.extract().ok();
            Some(Scalar::Complex(part("real")?, part("imag")?))
        }
        _ => value.extract().ok().map(Scalar::Int),
    }
}
