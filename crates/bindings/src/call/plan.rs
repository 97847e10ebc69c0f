//! The loop of an element-wise op for operands of some kinds, one of NumPy's inner loops, and its dtypes.

use super::callee::{Callee, Element};
use super::kind::Kind;
use crate::interpreter::dtypes;
use crate::interpreter::errors;
use crate::pushes::Loop;
use pyo3::exceptions::PyTypeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyComplex, PyDict, PyFloat, PyInt, PyTuple, PyType};
use smallvec::SmallVec;
use weft_array::DType;

/// The dtypes of an op's computation for operands of some kinds, and its loops.
#[pyclass(module = "weft._core", frozen)]
pub(crate) struct Plan {
    /// The operands' dtypes inside the loop, then those of the results.
    pub(super) dtypes: SmallVec<[DType; 3]>,
    nin: usize,
    kinds: SmallVec<[Kind; 3]>,
    /// NumPy has a loop for exactly these operands: it compares int64 with uint64, but casts nothing to them.
    is_mixed: bool,
    /// The loop for the operands as they are, on every kind of device.
    of: Option<Py<Loop>>,
    /// The same on the host.
    pub(super) native: Option<Py<Loop>>,
    /// The host's loop for operands that are cast to its dtypes first.
    pub(super) after_casts: Option<Py<Loop>>,
}

#[pymethods]
impl Plan {
    /// The dtypes of the operands inside the loop.
    #[getter]
    fn inputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        tuple(py, self.of_inputs())
    }

    /// The dtypes of the results.
    #[getter]
    fn outputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        tuple(py, self.of_outputs())
    }

    /// Both; None if NumPy has to find the loop by itself.
    #[getter]
    fn signature<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        if self.is_mixed { Ok(None) } else { tuple(py, &self.dtypes).map(Some) }
    }

    /// The operands that are Python numbers: (position, dtype inside the loop).
    #[getter]
    fn scalars<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let scalars = self.kinds.iter().enumerate().filter(|(_, kind)| !kind.is_array());
        let each = scalars.map(|(at, _)| Ok((at, dtypes::to_python(py, self.dtypes[at])?)));
        PyTuple::new(py, each.collect::<PyResult<Vec<_>>>()?)
    }

    /// The host's loop for the operands as they are.
    #[getter]
    fn native(&self, py: Python<'_>) -> Option<Py<Loop>> {
        self.native.as_ref().map(|of| of.clone_ref(py))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.of)?;
        visit.call(&self.native)?;
        visit.call(&self.after_casts)
    }
}

fn tuple<'py>(py: Python<'py>, of: &[DType]) -> PyResult<Bound<'py, PyTuple>> {
    let each = of.iter().map(|dtype| dtypes::to_python(py, *dtype)).collect::<PyResult<Vec<_>>>()?;
    PyTuple::new(py, each)
}

impl Plan {
    /// The loop for the operands as they are, on every kind of device.
    pub(super) fn everywhere(&self) -> Option<&Py<Loop>> {
        self.of.as_ref()
    }

    pub(super) fn of_inputs(&self) -> &[DType] {
        &self.dtypes[..self.nin]
    }

    pub(super) fn of_outputs(&self) -> &[DType] {
        &self.dtypes[self.nin..]
    }

    /// The plan of an op for operands of these kinds; `dtype` is the caller's wish.
    pub(super) fn make(
        op: &Bound<'_, Callee>,
        element: &Element,
        kinds: &[Kind],
        dtype: Option<DType>,
    ) -> PyResult<Self> {
        let py = op.py();
        let ufunc = element.ufunc.bind(py);
        let found = resolved(ufunc, kinds, dtype)?;
        let (inputs, mut outputs) = (&found[..kinds.len()], found[kinds.len()..].to_vec());
        if dtype.is_none() && element.has_own_rule {
            // A user's rule may refuse operands that the ufunc takes, or return another dtype.
            let asked = op.call_method1(intern!(py, "_dtypes_by_rule"), (representatives(py, kinds)?,))?;
            outputs = asked.try_iter()?.map(|dtype| dtypes::from_python(&dtype?)).collect::<PyResult<_>>()?;
        }
        let has_one = outputs.len() == 1;
        let dtypes: SmallVec<[DType; 3]> = inputs.iter().copied().chain(outputs).collect();
        let exact = kinds.iter().zip(inputs).all(|(kind, of)| !kind.is_array() || *kind == Kind::Array(*of));
        let known = Loop::of(ufunc, &tuple(py, &dtypes)?)?.map(|found| Py::new(py, found)).transpose()?;
        let alike = inputs.iter().all(|dtype| *dtype == inputs[0]);
        if let (Some(found), true, false, None) = (&known, exact && alike && has_one, element.has_own_rule, dtype) {
            op.get().alike.enter(inputs[0], found.clone_ref(py));
        }
        let on_host = |of: &Option<Py<Loop>>| of.as_ref().filter(|_| !element.host_replaced).map(|of| of.clone_ref(py));
        let native = if exact { on_host(&known) } else { None };
        Ok(Self {
            nin: kinds.len(),
            kinds: kinds.into(),
            is_mixed: element.compares && !alike,
            of: native.as_ref().filter(|_| !element.device_replaced).map(|of| of.clone_ref(py)),
            // NumPy compares int64 with uint64 by a loop of its own, not as floats.
            after_casts: if exact || !alike || !element.casts { None } else { on_host(&known) },
            native,
            dtypes,
        })
    }
}

/// NumPy's dtype, or class of number, for each operand.
fn representatives<'py>(py: Python<'py>, kinds: &[Kind]) -> PyResult<Bound<'py, PyTuple>> {
    let each = |kind: &Kind| -> PyResult<Py<PyAny>> {
        Ok(match kind {
            Kind::Array(dtype) => dtypes::to_python(py, *dtype)?,
            // NumPy's promotion knows no Python booleans.
            Kind::Bool => dtypes::to_python(py, DType::Bool)?,
            Kind::Int => py.get_type::<PyInt>().into_any().unbind(),
            Kind::Float => py.get_type::<PyFloat>().into_any().unbind(),
            Kind::Complex => py.get_type::<PyComplex>().into_any().unbind(),
        })
    };
    PyTuple::new(py, kinds.iter().map(each).collect::<PyResult<Vec<_>>>()?)
}

/// The dtypes of the inner loop that a ufunc takes for operands of these kinds, inputs first.
fn resolved(ufunc: &Bound<'_, PyAny>, kinds: &[Kind], dtype: Option<DType>) -> PyResult<Vec<DType>> {
    let py = ufunc.py();
    let outputs: usize = ufunc.getattr(intern!(py, "nout"))?.extract()?;
    let nothing = || std::iter::repeat_with(|| py.None());
    let inputs = representatives(py, kinds)?;
    let asked = PyTuple::new(py, inputs.iter().map(Bound::unbind).chain(nothing().take(outputs)).collect::<Vec<_>>())?;
    let options = match dtype {
        None => None,
        Some(dtype) => {
            let wanted = dtypes::to_python(py, dtype)?;
            let wanted = std::iter::repeat_with(|| wanted.clone_ref(py)).take(outputs);
            let signature = PyTuple::new(py, nothing().take(kinds.len()).chain(wanted).collect::<Vec<_>>())?;
            let options = PyDict::new(py);
            options.set_item(intern!(py, "signature"), signature)?;
            options.set_item(intern!(py, "casting"), intern!(py, "same_kind"))?;
            Some(options)
        }
    };
    match ufunc.call_method(intern!(py, "resolve_dtypes"), (asked,), options.as_ref()) {
        Ok(found) => found.try_iter()?.map(|dtype| dtypes::from_python(&dtype?)).collect(),
        Err(error) if error.is_instance_of::<PyTypeError>(py) => {
            let named = inputs.iter().map(|kind| match kind.cast::<PyType>() {
                Ok(class) => Ok(format!("Python {}", class.name()?)),
                Err(_) => Ok(kind.str()?.to_string()),
            });
            let named = named.collect::<PyResult<Vec<_>>>()?.join(", ");
            let name = ufunc.getattr(intern!(py, "__name__"))?;
            let message = format!("{name}({named}): {}", error.value(py));
            Err(errors::argument_type(py, &message))
        }
        Err(error) => Err(error),
    }
}
