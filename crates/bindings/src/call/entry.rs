//! The entry of calls: arguments as CPython hands them over.
//!
//! Every op of a program enters here. pyo3 would make a tuple of ``*operands`` and a dictionary of ``**attributes``,
//! which costs as much as the walk itself. So this one entry is written by hand.

use super::callee::Callee;
use super::walk::call;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::intern;
use pyo3::panic::PanicException;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use smallvec::SmallVec;
use std::ffi::CStr;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Operands as given.
pub(super) type Given<'py> = [Bound<'py, PyAny>];
/// Attributes by their names, in the order given.
pub(super) type Named<'a, 'py> = SmallVec<[(Borrowed<'a, 'py, PyString>, Borrowed<'a, 'py, PyAny>); 5]>;

/// A call as given: CPython keeps what it refers to.
pub(super) struct Asked<'a, 'py> {
    pub(super) op: &'a Bound<'py, Callee>,
    pub(super) operands: &'a Given<'py>,
    pub(super) attributes: Named<'a, 'py>,
    pub(super) out: Option<Borrowed<'a, 'py, PyAny>>,
    pub(super) engine: Option<Borrowed<'a, 'py, PyAny>>,
}

/// A dictionary of attributes.
pub(super) fn dictionary<'py>(py: Python<'py>, attributes: &Named<'_, 'py>) -> PyResult<Bound<'py, PyDict>> {
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

const DOC_OVER: &CStr = c"call_over(op, operands, /, out=None, engine=None, **attributes)
--

`call` with the operands in a tuple or list.";

const fn definition(name: &CStr, enter: ffi::PyCFunctionFastWithKeywords, doc: &CStr) -> Definition {
    Definition(ffi::PyMethodDef {
        ml_name: name.as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: enter },
        ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
        ml_doc: doc.as_ptr(),
    })
}

static CALL: Definition = definition(c"call", enter::<false>, DOC);
static CALL_OVER: Definition = definition(c"call_over", enter::<true>, DOC_OVER);

/// Adds `call` and `call_over` to the module.
pub(crate) fn add_call(module: &Bound<'_, PyModule>) -> PyResult<()> {
    for (name, definition) in [("call", &CALL), ("call_over", &CALL_OVER)] {
        // SAFETY: attached; the definition is a constant, which CPython only reads.
        let function = unsafe {
            let definition = (&raw const definition.0).cast_mut();
            let room = module.name()?;
            Bound::from_owned_ptr_or_err(
                module.py(),
                ffi::PyCFunction_NewEx(definition, std::ptr::null_mut(), room.as_ptr()),
            )?
        };
        module.add(name, function)?;
    }
    Ok(())
}

/// Makes a call over the items of its one operand.
fn call_over<'py>(asked: &Asked<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
    let items: SmallVec<[Bound<'py, PyAny>; 4]> = match asked.operands {
        [items] if items.is_instance_of::<PyTuple>() => items.cast::<PyTuple>()?.iter().collect(),
        [items] if items.is_instance_of::<PyList>() => items.cast::<PyList>()?.iter().collect(),
        _ => return Err(PyTypeError::new_err("call_over() takes an op, and a tuple or list of its operands")),
    };
    call(asked, &items)
}

/// The function that CPython calls: `count` operands at `arguments`, and behind them the values of `names`. With `OVER`
/// the operands are the items of one argument.
unsafe extern "C" fn enter<const OVER: bool>(
    _own: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    let body = |py: Python<'_>| {
        // SAFETY: CPython's convention for arguments.
        let asked = unsafe { asked(py, arguments, count, &names) };
        let result = catch_unwind(AssertUnwindSafe(|| {
            let asked = asked?;
            if OVER { call_over(&asked) } else { call(&asked, asked.operands) }
        }));
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
/// `arguments` points to this many objects, and one more for each of `names`, which is a tuple of strings or null. All
/// of them live for as long as the call is looked at.
#[inline]
unsafe fn asked<'a, 'py>(
    _: Python<'py>,
    arguments: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: &'a *mut ffi::PyObject,
) -> PyResult<Asked<'a, 'py>> {
    let count = usize::try_from(count).unwrap_or(0);
    // SAFETY: as promised by the caller; a `Bound` is in memory the pointer to its object.
    let names = (!names.is_null()).then(|| unsafe { &*std::ptr::from_ref(names).cast::<Bound<'py, PyAny>>() });
    let names = names.map(|names| names.cast::<PyTuple>()).transpose()?;
    let keywords = names.map_or(0, PyTupleMethods::len);
    // SAFETY: the same.
    let given: &'a Given<'py> = unsafe { std::slice::from_raw_parts(arguments.cast(), count + keywords) };
    let Some((op, operands)) = given[..count].split_first() else {
        return Err(PyTypeError::new_err("call() takes an op, and its operands"));
    };
    let mut asked = Asked { op: op.cast::<Callee>()?, operands, attributes: Named::new(), out: None, engine: None };
    let Some(names) = names else { return Ok(asked) };
    for (at, value) in given[count..].iter().enumerate() {
        let (name, value) = (names.get_borrowed_item(at)?.cast::<PyString>()?, value.as_borrowed());
        match place(name) {
            Some(Place::Out) => asked.out = Some(value).filter(|value| !value.is_none()),
            Some(Place::Engine) => asked.engine = Some(value).filter(|value| !value.is_none()),
            None => asked.attributes.push((name, value)),
        }
    }
    Ok(asked)
}

enum Place {
    Out,
    Engine,
}

/// The argument of this name that is no attribute. A name in source is one object for each text, so that mostly the
/// objects tell.
#[inline]
fn place(name: Borrowed<'_, '_, PyString>) -> Option<Place> {
    let py = name.py();
    if name.is(intern!(py, "out")) {
        return Some(Place::Out);
    }
    if name.is(intern!(py, "engine")) {
        return Some(Place::Engine);
    }
    // SAFETY: attached, and it is a string.
    match unsafe { ffi::PyUnicode_GetLength(name.as_ptr()) } {
        3 if name.to_str().is_ok_and(|name| name == "out") => Some(Place::Out),
        6 if name.to_str().is_ok_and(|name| name == "engine") => Some(Place::Engine),
        _ => None,
    }
}
