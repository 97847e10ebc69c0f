//! The facts about an array whose values were not saved.

use crate::engine::Engine;
use crate::interpreter::dtypes;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use weft_array::{Array, DType, Shape};

/// Shape, dtype and place of an array whose values were not saved.
#[pyclass(module = "weft._core", frozen, name = "Outline")]
pub(crate) struct Outline {
    pub(crate) shape: Shape,
    pub(crate) dtype: DType,
    pub(crate) device: u16,
    pub(crate) engine: Py<Engine>,
}

impl Outline {
    /// That of an array of this shape and dtype beside `like`.
    #[inline]
    pub(crate) fn beside(py: Python<'_>, like: &Array, engine: &Py<Engine>, shape: &[usize], dtype: DType) -> Self {
        Self { shape: Shape::from_slice(shape), dtype, device: like.device(), engine: engine.clone_ref(py) }
    }

    pub(crate) fn clone_ref(&self, py: Python<'_>) -> Self {
        let (shape, dtype, device) = (Shape::from_slice(&self.shape), self.dtype, self.device);
        Self { shape, dtype, device, engine: self.engine.clone_ref(py) }
    }
}

#[pymethods]
impl Outline {
    /// The lengths of the axes.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.shape)
    }

    /// The type of the elements, a `numpy.dtype`.
    #[getter]
    fn dtype(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        dtypes::to_python(py, self.dtype)
    }

    /// The number of axes.
    #[getter]
    fn ndim(&self) -> usize {
        self.shape.len()
    }

    /// The number of elements.
    #[getter]
    fn size(&self) -> usize {
        self.shape.iter().product()
    }

    /// The array's engine.
    #[getter]
    fn engine(&self, py: Python<'_>) -> Py<Engine> {
        self.engine.clone_ref(py)
    }

    /// The number of the array's device.
    #[getter]
    fn _device(&self) -> u16 {
        self.device
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.engine)
    }
}
