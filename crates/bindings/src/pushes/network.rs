//! Kernels besides convolutions, pooling and channels: of labels, tables, rows and recurrent layers. Each answers None
//! for a dtype that it does not support.

use super::kernel::{Kernel, refuse};
use crate::interpreter::dtypes;
use pyo3::prelude::*;
use weft_array::DType;
use weft_kernels::{
    Across, Cells, CrossEntropy, Gates, Generator, LayerNorm, Lookup, Mask, Mode, Neighbours, Sequence,
};

/// Cross entropy of rows of classes, or its gradient. Labels are classes of a dtype, or rows.
#[pyfunction]
pub(crate) fn kernel_cross_entropy(
    name: String,
    dtype: &Bound<'_, PyAny>,
    sizes: [usize; 2],
    gradient: bool,
    classes: Option<&Bound<'_, PyAny>>,
) -> PyResult<Option<Kernel>> {
    let (dtype, [outer, length]) = (dtypes::from_python(dtype)?, sizes);
    let classes = classes.map(dtypes::from_python).transpose()?;
    let own = CrossEntropy { gradient, classes, outer, length };
    let operands = own.operands(dtype);
    let inputs = operands.len() - 1;
    Ok(own.step(dtype).map(|step| Kernel::of(name, operands, inputs, step)))
}

/// Normalisation of rows of a length, or its gradients.
#[pyfunction]
pub(crate) fn kernel_layer_norm(
    name: String,
    dtype: &Bound<'_, PyAny>,
    sizes: [usize; 2],
    gradient: bool,
    eps: f64,
) -> PyResult<Option<Kernel>> {
    let (dtype, [outer, length]) = (dtypes::from_python(dtype)?, sizes);
    let own = LayerNorm { gradient, outer, length, eps };
    Ok(own.step(dtype).map(|step| Kernel::alike(name, dtype, own.operands(), 3, step)))
}

/// A dropout mask of `count` numbers from a generator's state, which it changes; None for another kind of generator.
#[pyfunction]
pub(crate) fn kernel_mask(
    name: String,
    dtype: &Bound<'_, PyAny>,
    count: usize,
    rate: f64,
    words: usize,
) -> PyResult<Option<Kernel>> {
    let Some(generator) = Generator::of_state(words) else { return Ok(None) };
    let (own, dtype) = (Mask { count, rate, generator }, dtypes::from_python(dtype)?);
    let operands = [(DType::UInt64, words), (dtype, count)];
    Ok(own.step(dtype).map(|step| Kernel::of(name, operands, 1, step).changing(1)))
}

/// Rows of a table by their numbers, which have a dtype, or the table's gradient. Sizes are the counts of numbers and
/// of rows, and a row's length.
#[pyfunction]
pub(crate) fn kernel_lookup(
    name: String,
    dtype: &Bound<'_, PyAny>,
    numbers: &Bound<'_, PyAny>,
    sizes: [usize; 3],
    gradient: bool,
) -> PyResult<Option<Kernel>> {
    let (dtype, [count, rows, width]) = (dtypes::from_python(dtype)?, sizes);
    let own = Lookup { gradient, numbers: dtypes::from_python(numbers)?, count, rows, width };
    Ok(own.step(dtype).map(|step| Kernel::of(name, own.operands(dtype), 2, step)))
}

/// Sums over neighbouring channels, or normalisation by sums of squares: scale, shift and power. Sizes are the product
/// of the lengths before the channels, their number, and the product of the lengths behind.
#[pyfunction]
pub(crate) fn kernel_neighbours(
    name: String,
    dtype: &Bound<'_, PyAny>,
    sizes: [usize; 3],
    reach: [usize; 2],
    normal: Option<(f64, f64, f64)>,
) -> PyResult<Option<Kernel>> {
    let (dtype, [outer, channels, inner]) = (dtypes::from_python(dtype)?, sizes);
    let what = normal.map_or(Neighbours::Sum, |(scale, shift, power)| Neighbours::Normal { scale, shift, power });
    let own = Across { what, reach, outer, channels, inner };
    let size = outer * channels * inner;
    Ok(own.step(dtype).map(|step| Kernel::alike(name, dtype, [size, size], 1, step)))
}

/// The element-wise part of a cell: "lstm", "gru", or the gradient of one, which ends in "_data"; over rows of states.
#[pyfunction]
pub(crate) fn kernel_cells(
    name: String,
    dtype: &Bound<'_, PyAny>,
    gates: &str,
    sizes: [usize; 2],
) -> PyResult<Option<Kernel>> {
    let gates = match gates {
        "lstm" => Gates::Lstm,
        "lstm_data" => Gates::LstmGradient,
        "gru" => Gates::Gru,
        "gru_data" => Gates::GruGradient,
        _ => return Err(refuse("cells are those of an LSTM or of a GRU")),
    };
    let (dtype, [rows, wide]) = (dtypes::from_python(dtype)?, sizes);
    let own = Cells { gates, rows, wide };
    let (inputs, outputs) = own.operands();
    let operands = inputs.iter().chain(outputs).map(|times| times * rows * wide);
    Ok(own.step(dtype).map(|step| Kernel::alike(name, dtype, operands, inputs.len(), step)))
}

/// One direction of a recurrent layer ("lstm", "gru", "tanh" or "relu"), or its gradients except those of the weights.
/// Sizes are steps, rows of a step, and elements of a row's state.
#[pyfunction]
pub(crate) fn kernel_sequence(
    name: String,
    dtype: &Bound<'_, PyAny>,
    mode: &str,
    sizes: [usize; 3],
    gradient: bool,
    reverse: bool,
) -> PyResult<Option<Kernel>> {
    let mode = match mode {
        "lstm" => Mode::Lstm,
        "gru" => Mode::Gru,
        "tanh" => Mode::Tanh,
        "relu" => Mode::Relu,
        _ => return Err(refuse("recurrent layers are of lstm, gru, tanh or relu")),
    };
    let (dtype, [steps, batch, wide]) = (dtypes::from_python(dtype)?, sizes);
    let own = Sequence { mode, gradient, reverse, steps, batch, wide };
    let (sizes, inputs) = own.operands();
    Ok(own.step(dtype).map(|step| Kernel::alike(name, dtype, sizes, inputs, step)))
}
