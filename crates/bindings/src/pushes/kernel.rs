//! Kernels of networks for Python: made once for given shapes and attributes, pushed any number of times.

use super::memory::laid_out;
use crate::array::NDArray;
use crate::array::moves::taken;
use crate::hearing::record;
use crate::interpreter::dtypes;
use crate::payloads::trace;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use smallvec::SmallVec;
use std::sync::Arc;
use weft_array::{Access, Array, Blocked, DType, push_blocked};
use weft_engine::PushOptions;
use weft_engine::trace::Kind;
use weft_kernels::{Along, Channels, Channelwise, Convolution, Pool, Pooling, Product, Rows, Window, onednn};

/// A kernel for operands of fixed sizes.
#[pyclass(module = "weft._core", frozen)]
pub(crate) struct Kernel {
    name: String,
    /// The dtype and the number of elements of each operand, inputs first.
    operands: SmallVec<[(DType, usize); 6]>,
    inputs: usize,
    /// The number of inputs, counted from the last, that the kernel changes.
    changed: usize,
    step: Arc<dyn Blocked>,
}

impl Kernel {
    /// A kernel for operands of these dtypes and sizes; the first `inputs` of them are inputs.
    pub(super) fn of(
        name: String,
        operands: impl IntoIterator<Item = (DType, usize)>,
        inputs: usize,
        step: Arc<dyn Blocked>,
    ) -> Self {
        Self { name, operands: operands.into_iter().collect(), inputs, changed: 0, step }
    }

    /// The same kernel, changing its last `changed` inputs.
    pub(super) fn changing(self, changed: usize) -> Self {
        Self { changed, ..self }
    }

    /// A kernel with one dtype for all operands.
    pub(super) fn alike(
        name: String,
        dtype: DType,
        sizes: impl IntoIterator<Item = usize>,
        inputs: usize,
        step: Arc<dyn Blocked>,
    ) -> Self {
        Self::of(name, sizes.into_iter().map(|size| (dtype, size)), inputs, step)
    }
}

impl Kernel {
    /// Whether it takes operands and results of these dtypes and sizes. It reads only the first operands, as many as
    /// its inputs.
    pub(crate) fn takes(&self, operands: &[(DType, usize)], results: &[(DType, usize)]) -> bool {
        operands.len() >= self.inputs
            && self.changed == 0
            && operands[..self.inputs] == self.operands[..self.inputs]
            && results == &self.operands[self.inputs..]
    }

    /// Pushes it, if the results are contiguous. Inputs that are not are copied first.
    pub(crate) fn push_over(
        &self,
        py: Python<'_>,
        results: &[Bound<'_, NDArray>],
        operands: &[Bound<'_, PyAny>],
    ) -> PyResult<bool> {
        let Some(first) = results.first() else { return Ok(false) };
        let mut arrays = Arrays::new();
        for operand in operands.iter().take(self.inputs) {
            let Ok(array) = operand.cast::<NDArray>() else { return Ok(false) };
            let own = array.get();
            arrays.push(if own.inner.is_contiguous() { own.inner.clone() } else { laid_out(py, own)? });
        }
        arrays.extend(results.iter().map(|result| result.get().inner.clone()));
        if !self.is_for(&arrays) {
            return Ok(false);
        }
        self.run(py, first.get(), &arrays)?;
        Ok(true)
    }

    fn is_for(&self, arrays: &[Array]) -> bool {
        arrays.len() == self.operands.len()
            && arrays.iter().zip(&self.operands).all(|(array, &(dtype, size))| {
                array.dtype() == dtype && array.layout().size() == size && array.is_contiguous()
            })
    }

    /// Pushes it on arrays that it takes; `beside` gives the engine and the device.
    fn run(&self, py: Python<'_>, beside: &NDArray, arrays: &[Array]) -> PyResult<()> {
        let bytes: usize = arrays[self.inputs..].iter().map(Array::bytes).sum();
        beside.owner().get().wait_for_room(py, bytes as u64)?;
        let note = trace::of_arrays(py, beside.inner.engine(), Kind::Compute, &self.name);
        let note = trace::placed(py, note, usize::MAX); // it may refuse its inputs, however small they are
        let options = PushOptions { note, bytes: bytes as u64, name: Some(&self.name), ..PushOptions::default() };
        let unchanged = self.inputs - self.changed;
        let access = |at: usize| match at {
            _ if at < unchanged => Access::Read,
            _ if at < self.inputs => Access::Mutate,
            _ => Access::Overwrite,
        };
        let arrays: SmallVec<[(&Array, Access); 6]> =
            arrays.iter().enumerate().map(|(at, array)| (array, access(at))).collect();
        // SAFETY: they are contiguous, and have the sizes and dtypes that the step was made for.
        let pushed = unsafe { push_blocked(&self.step, &arrays, options) };
        pushed.map_err(|error| crate::array::raised(py, error))
    }
}

fn handles<'py>(all: &Bound<'py, PyTuple>) -> PyResult<SmallVec<[Bound<'py, NDArray>; 6]>> {
    all.iter().map(|item| Ok(taken(item)?)).collect()
}

type Arrays = SmallVec<[Array; 6]>;
type Three = [usize; 3];

pub(super) fn refuse(message: &str) -> PyErr {
    PyValueError::new_err(message.to_owned())
}

fn window(
    (lengths, kernel, stride, before, dilation, counts): (Three, Three, Three, Three, Three, Three),
) -> PyResult<Window> {
    if stride.contains(&0) || dilation.contains(&0) || kernel.contains(&0) {
        return Err(refuse("a window has lengths, strides and dilations of at least 1"));
    }
    Ok(Window { lengths, kernel, stride, before, dilation, counts })
}

#[pymethods]
impl Kernel {
    /// One of the three products of a convolution: "results", "data" or "weights". The window is lengths, kernel,
    /// stride, padding before, dilation, counts; sizes are batch, channels, filters and groups.
    #[staticmethod]
    fn convolution(
        name: String,
        product: &str,
        dtype: &Bound<'_, PyAny>,
        sizes: [usize; 4],
        windows: (Three, Three, Three, Three, Three, Three),
        bias: bool,
    ) -> PyResult<Option<Self>> {
        let product = match product {
            "results" => Product::Results,
            "data" => Product::Data,
            "weights" => Product::Weights,
            _ => return Err(refuse("a product is of results, data or weights")),
        };
        let ([batch, channels, filters, groups], window) = (sizes, window(windows)?);
        if groups == 0 || channels % groups != 0 || filters % groups != 0 || (bias && product != Product::Results) {
            return Err(refuse("groups divide channels and filters, and a bias belongs to results"));
        }
        let own = Convolution { product, batch, channels, filters, groups, window, bias, rectified: false };
        let dtype = dtypes::from_python(dtype)?;
        let data = batch * channels * window.channel();
        let results = batch * filters * window.total();
        let weights = filters * (channels / groups) * window.size();
        let sizes: SmallVec<[usize; 6]> = match product {
            Product::Results if bias => [data, weights, filters, results].into_iter().collect(),
            Product::Results => [data, weights, results].into_iter().collect(),
            Product::Data => [results, weights, data].into_iter().collect(),
            Product::Weights => [data, results, weights].into_iter().collect(),
        };
        let inputs = sizes.len() - 1;
        Ok(own.step(dtype).map(|step| Self::alike(name, dtype, sizes, inputs, step)))
    }

    /// Pooling of planes: "largest", "to_largest", "of_largest", "mean" or "to_mean". `reach` is the extent in which
    /// padding counts for a mean.
    #[staticmethod]
    fn pooling(
        name: String,
        pool: &str,
        dtype: &Bound<'_, PyAny>,
        planes: usize,
        windows: (Three, Three, Three, Three, Three, Three),
        reach: Option<Three>,
    ) -> PyResult<Option<Self>> {
        let pool = match pool {
            "largest" => Pool::Largest,
            "to_largest" => Pool::ToLargest,
            "of_largest" => Pool::OfLargest,
            "mean" => Pool::Mean,
            "to_mean" => Pool::ToMean,
            _ => return Err(refuse("pooling is of the largest elements or of means")),
        };
        let (window, dtype) = (window(windows)?, dtypes::from_python(dtype)?);
        let (wide, narrow) = (planes * window.channel(), planes * window.total());
        let sizes: SmallVec<[usize; 6]> = match pool {
            Pool::Largest | Pool::Mean => [wide, narrow].into_iter().collect(),
            Pool::ToLargest => [narrow, wide, wide].into_iter().collect(),
            Pool::OfLargest => [wide, wide, narrow].into_iter().collect(),
            Pool::ToMean => [narrow, wide].into_iter().collect(),
        };
        let inputs = sizes.len() - 1;
        let own = Pooling { pool, planes, window, reach };
        Ok(own.step(dtype).map(|step| Self::alike(name, dtype, sizes, inputs, step)))
    }

    /// An operation on channels: "sum", "normal", "train" or "gradient". Sizes are the product of the lengths before
    /// the channels, their number, and the product of the lengths behind.
    #[staticmethod]
    fn channels(name: String, what: &str, dtype: &Bound<'_, PyAny>, sizes: Three, eps: f64) -> PyResult<Option<Self>> {
        let what = match what {
            "sum" => Channelwise::Sum,
            "normal" => Channelwise::Normal,
            "train" => Channelwise::Train,
            "gradient" => Channelwise::Gradient,
            _ => return Err(refuse("channels are summed or normalised")),
        };
        let [outer, channels, inner] = sizes;
        let (own, dtype) = (Channels { what, outer, channels, inner, eps }, dtypes::from_python(dtype)?);
        let (inputs, outputs) = own.operands();
        let size = |whole: &bool| if *whole { outer * channels * inner } else { channels };
        let sizes: Vec<usize> = inputs.iter().chain(outputs).map(size).collect();
        Ok(own.step(dtype).map(|step| Self::alike(name, dtype, sizes, inputs.len(), step)))
    }

    /// An operation along an axis: "softmax", "log_softmax", or the gradient of one, which ends in "_data". Sizes as
    /// above.
    #[staticmethod]
    fn rows(name: String, along: &str, dtype: &Bound<'_, PyAny>, sizes: Three) -> PyResult<Option<Self>> {
        let along = match along {
            "softmax" => Along::Softmax,
            "softmax_data" => Along::SoftmaxGradient,
            "log_softmax" => Along::LogSoftmax,
            "log_softmax_data" => Along::LogSoftmaxGradient,
            _ => return Err(refuse("along an axis there are softmax and its logarithm")),
        };
        let [outer, length, inner] = sizes;
        let (own, dtype) = (Rows { along, outer, length, inner }, dtypes::from_python(dtype)?);
        let inputs = own.inputs();
        let sizes = std::iter::repeat_n(outer * length * inner, inputs + 1);
        Ok(own.step(dtype).map(|step| Self::alike(name, dtype, sizes, inputs, step)))
    }

    /// Pushes it on contiguous arrays.
    fn push(&self, outputs: &Bound<'_, PyTuple>, inputs: &Bound<'_, PyTuple>) -> PyResult<()> {
        let (outputs, inputs) = (handles(outputs)?, handles(inputs)?);
        let arrays: Arrays = inputs.iter().chain(&outputs).map(|array| array.get().inner.clone()).collect();
        if inputs.len() != self.inputs || !self.is_for(&arrays) {
            return Err(refuse("a kernel takes contiguous arrays of the sizes and dtypes that it was made for"));
        }
        let Some(first) = outputs.first() else { return Ok(()) };
        self.run(first.py(), first.get(), &arrays)?;
        for written in inputs[self.inputs - self.changed..].iter().chain(&outputs) {
            record::wrote(written.py(), written.get());
        }
        Ok(())
    }

    fn __repr__(&self) -> String {
        let dtype = self.operands.last().map_or("nothing", |(dtype, _)| dtype.name());
        format!("<weft._core.Kernel {} of {dtype}>", self.name)
    }
}

/// Returns the name of the vectors that the kernels' loops use, and the names of all that this processor has.
#[pyfunction]
pub(crate) fn vectors() -> (&'static str, Vec<&'static str>) {
    weft_kernels::vectors()
}

/// Opens oneDNN, once for the process, from the first of these files that exists. Returns its version and its file, or
/// None and the reason why it is not used.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // extracted from a sequence
pub(crate) fn open_onednn(py: Python<'_>, paths: Vec<std::path::PathBuf>) -> (Option<String>, String) {
    match py.detach(|| onednn::open(&paths)) {
        Ok(library) => (Some(library.version().to_owned()), library.path().display().to_string()),
        Err(reason) => (None, reason.to_string()),
    }
}
