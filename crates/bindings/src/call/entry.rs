//! The entry of calls: arguments as CPython hands them over.
//!
//! Every op of a program enters here. pyo3 would make a tuple of ``*operands`` and a dictionary of ``**attributes``,
//! which costs as much as the walk itself. So this one entry is written by hand.

use super::callee::Callee;
use super::walk::call;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::panic::PanicException;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use smallvec::SmallVec;
use std::ffi::CStr;
use std::panic::{AssertUnwindSafe, catch_unwind};

pub(super) type Given<'py> = SmallVec<[Bound<'py, PyAny>; 4]>;
/// Attributes by their names, in the order given.
pub(super) type Named<'py> = SmallVec<[(Bound<'py, PyString>, Bound<'py, PyAny>); 5]>;

/// A call as given.
pub(super) struct Asked<'py> {
    pub(super) op: Bound<'py, Callee>,
    pub(super) operands: Given<'py>,
    pub(super) attributes: Named<'py>,
    pub(super) out: Option<Bound<'py, PyAny>>,
    pub(super) engine: Option<Bound<'py, PyAny>>,
}

/// The attributes of a dictionary; None if a name is not a string.
pub(super) fn named<'py>(attributes: &Bound<'py, PyDict>) -> Option<Named<'py>> {
    attributes.iter().map(|(name, value)| Some((name.cast_into::<PyString>().ok()?, value))).collect()
}

/// A dictionary of attributes.
pub(super) fn dictionary<'py>(py: Python<'py>, attributes: &Named<'py>) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    attributes.iter().try_for_each(|(name, value)| all.set_item(name, value))?;
    Ok(all)
}

const DOC: &CStr = c"call(op, *operands, out=None, engine=None, **attributes)
--

Pushes `op` over operands and returns its results, without waiting.

Parameters
----------
op : Op
    What to compute.
*operands : array-like
    The operands.
out : NDArray or tuple of NDArray, optional
    Where to write the results.
engine : Engine, optional
    For an op without operands, the engine; by default the default one.
**attributes
    The op's attributes; for one with a ufunc, ``where`` and ``dtype`` as in NumPy.

Returns
-------
NDArray or tuple of NDArray
    The results; a tuple where the op has not exactly one.";

struct Definition(ffi::PyMethodDef);

// SAFETY: its pointers are to constants.
unsafe impl Sync for Definition {}

static CALL: Definition = Definition(ffi::PyMethodDef {
    ml_name: c"call".as_ptr(),
    ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: enter },
    ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
    ml_doc: DOC.as_ptr(),
});

/// Adds `call` to the module.
pub(crate) fn add_call(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // SAFETY: attached; the definition is a constant, which CPython only reads.
    let function = unsafe {
        let definition = (&raw const CALL.0).cast_mut();
        let name = module.name()?;
        Bound::from_owned_ptr_or_err(
            module.py(),
            ffi::PyCFunction_NewEx(definition, std::ptr::null_mut(), name.as_ptr()),
        )?
    };
    module.add("call", function)
}

/// The function that CPython calls: `count` operands at `arguments`, and behind them the values of `names`.
unsafe extern "C" fn enter(
    _own: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    let body = |py: Python<'_>| {
        // SAFETY: CPython's convention for arguments.
        let asked = unsafe { asked(py, arguments, count, names) };
        let result = catch_unwind(AssertUnwindSafe(|| asked.and_then(|asked| call(&asked))));
        match result {
            Ok(Ok(result)) => result.into_ptr(),
            Ok(Err(error)) => {
                error.restore(py);
                std::ptr::null_mut()
            }
            Err(payload) => {
                let said = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
                let said = said.or_else(|| payload.downcast_ref::<String>().cloned());
                PanicException::new_err(said.unwrap_or_else(|| "a panic".to_owned())).restore(py);
                std::ptr::null_mut()
            }
        }
    };
    // SAFETY: CPython calls functions attached, or with its lock held. This tells pyo3.
    unsafe { Python::attach_unchecked(body) }
}

/// The call of these arguments.
///
/// # Safety
///
/// `arguments` points to this many living objects, and one more for each of `names`, which is a tuple of strings or
/// null.
unsafe fn asked(
    py: Python<'_>,
    arguments: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> PyResult<Asked<'_>> {
    let count = usize::try_from(count).unwrap_or(0);
    // SAFETY: as promised by the caller.
    let at = |at: usize| unsafe { Bound::from_borrowed_ptr(py, *arguments.add(at)) };
    if count == 0 {
        return Err(PyTypeError::new_err("call() takes an op, and its operands"));
    }
    let op = at(0).cast_into::<Callee>()?;
    let operands = (1..count).map(at).collect();
    let mut asked = Asked { op, operands, attributes: Named::new(), out: None, engine: None };
    // SAFETY: as promised by the caller.
    let Some(names) = (unsafe { Bound::from_borrowed_ptr_or_opt(py, names) }) else { return Ok(asked) };
    for (position, name) in names.cast::<PyTuple>()?.iter().enumerate() {
        let (name, value) = (name.cast_into::<PyString>()?, at(count + position));
        match name.to_str() {
            Ok("out") => asked.out = Some(value).filter(|value| !value.is_none()),
            Ok("engine") => asked.engine = Some(value).filter(|value| !value.is_none()),
            _ => asked.attributes.push((name, value)),
        }
    }
    Ok(asked)
}
