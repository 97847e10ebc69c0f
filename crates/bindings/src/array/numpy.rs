//! NumPy's own arrays through its C API, which makes or inspects one in a tenth of the time of a call of its class.

use crate::interpreter::dtypes;
use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyCapsule;
use smallvec::SmallVec;
use std::ffi::{c_int, c_void};
use std::ptr::NonNull;
use weft_array::{DType, SortLoop};

/// The beginning of NumPy's `PyArrayObject_fields`, which is part of its C API and has not changed since 1.7.
#[repr(C)]
struct ArrayObject {
    head: ffi::PyObject,
    data: *mut u8,
    ndim: c_int,
    lengths: *const isize,
    strides: *const isize,
    base: *const ffi::PyObject,
    dtype: *mut ffi::PyObject,
    flags: c_int,
}

/// The flag of arrays that may be written to.
const WRITABLE: c_int = 0x0400;

/// The beginning of NumPy's `PyArray_ArrFuncs`, which is part of its C API and has not changed since 1.7.
#[repr(C)]
pub(crate) struct ArrayFunctions {
    cast: [*const c_void; 21],
    others: [*const c_void; 10],
    /// Continues the first two elements. For numbers it does not read the array.
    pub(crate) fill: Option<unsafe extern "C" fn(*mut u8, isize, *mut c_void) -> c_int>,
    fill_with: *const c_void,
    /// Quick sort, heap sort, a stable one. For numbers they need no GIL, and do not read the array.
    pub(crate) sort: [Option<SortLoop>; 3],
}

type New = unsafe extern "C" fn(
    *mut ffi::PyTypeObject,
    *mut ffi::PyObject,
    c_int,
    *const isize,
    *const isize,
    *mut c_void,
    c_int,
    *mut ffi::PyObject,
) -> *mut ffi::PyObject;
type SetBase = unsafe extern "C" fn(*mut ffi::PyObject, *mut ffi::PyObject) -> c_int;
type OfDType = unsafe extern "C" fn(*const ffi::PyObject) -> *const ArrayFunctions;

/// The functions that we need from NumPy's table; places in it never change.
struct Table {
    class: *mut ffi::PyTypeObject,
    new: New,
    set_base: SetBase,
    of_dtype: OfDType,
}

// SAFETY: its functions live as long as the process, and only attached threads call them.
unsafe impl Send for Table {}
// SAFETY: as above.
unsafe impl Sync for Table {}

fn table(py: Python<'_>) -> PyResult<&'static Table> {
    static TABLE: PyOnceLock<Table> = PyOnceLock::new();
    TABLE.get_or_try_init(py, || {
        let found = py.import("numpy._core._multiarray_umath")?.getattr("_ARRAY_API")?.cast_into::<PyCapsule>()?;
        // SAFETY: the capsule has no name, and holds a table that lives as long as the process. Since NumPy 2.0 it has
        // had a class and functions of these types at these places.
        unsafe {
            let table = ffi::PyCapsule_GetPointer(found.as_ptr(), std::ptr::null()).cast::<*mut c_void>();
            if table.is_null() {
                return Err(
                    PyErr::take(py).unwrap_or_else(|| PyRuntimeError::new_err("NumPy has no table of functions"))
                );
            }
            Ok(Table {
                class: (*table.add(2)).cast(),
                new: std::mem::transmute::<*mut c_void, New>(*table.add(94)),
                set_base: std::mem::transmute::<*mut c_void, SetBase>(*table.add(282)),
                of_dtype: std::mem::transmute::<*mut c_void, OfDType>(*table.add(365)),
            })
        }
    })
}

/// The functions of one of NumPy's own dtypes, which live as long as the process.
pub(crate) fn functions_of(py: Python<'_>, dtype: DType) -> PyResult<Option<&'static ArrayFunctions>> {
    let (table, dtype) = (table(py)?, dtypes::to_python(py, dtype)?);
    // SAFETY: it is a dtype of NumPy's own.
    Ok(unsafe { (table.of_dtype)(dtype.as_ptr()).as_ref() })
}

/// A NumPy array of its own, in C order, of undefined elements.
pub(crate) fn made<'py>(py: Python<'py>, dtype: DType, shape: &[usize]) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: without an address NumPy allocates the memory.
    unsafe { new(py, dtype, shape, None, std::ptr::null_mut(), false) }
}

/// A NumPy array on memory that `base` keeps.
///
/// # Safety
///
/// The elements lie inside that memory, and may be written to if `writable`.
pub(crate) unsafe fn on<'py>(
    dtype: DType,
    (shape, strides): (&[usize], &[isize]),
    start: *mut u8,
    writable: bool,
    base: Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = base.py();
    // SAFETY: the caller's promise.
    let array = unsafe { new(py, dtype, shape, Some(strides), start.cast(), writable)? };
    // SAFETY: it is a new array, which takes the reference.
    if unsafe { (table(py)?.set_base)(array.as_ptr(), base.into_ptr()) } < 0 {
        return Err(PyErr::fetch(py));
    }
    Ok(array)
}

/// # Safety
///
/// As for `on`, if there is an address.
unsafe fn new<'py>(
    py: Python<'py>,
    dtype: DType,
    shape: &[usize],
    strides: Option<&[isize]>,
    start: *mut c_void,
    writable: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let table = table(py)?;
    let lengths: SmallVec<[isize; 6]> = shape.iter().map(|length| length.cast_signed()).collect();
    let strides = strides.map_or(std::ptr::null(), <[isize]>::as_ptr);
    let (dtype, flags) = (dtypes::to_python(py, dtype)?.into_ptr(), if writable { WRITABLE } else { 0 });
    let count = c_int::try_from(lengths.len()).unwrap_or(c_int::MAX); // NumPy refuses that
    // SAFETY: there are `count` lengths and as many strides; NumPy takes the reference to the dtype.
    unsafe {
        let made =
            (table.new)(table.class, dtype, count, lengths.as_ptr(), strides, start, flags, std::ptr::null_mut());
        Bound::from_owned_ptr_or_err(py, made)
    }
}

/// Memory, layout and dtype of a NumPy array.
pub(crate) struct Shown<'a, 'py> {
    pub(crate) start: *mut u8,
    pub(crate) shape: SmallVec<[usize; 6]>,
    pub(crate) strides: &'a [isize],
    pub(crate) dtype: Bound<'py, PyAny>,
    pub(crate) is_writable: bool,
    /// Whether it has memory of its own.
    pub(crate) is_own: bool,
}

/// The memory, layout and dtype of `array`, if it is one of NumPy's.
pub(crate) fn shown<'a, 'py>(array: &'a Bound<'py, PyAny>) -> PyResult<Option<Shown<'a, 'py>>> {
    let py = array.py();
    // SAFETY: attached, and both live.
    if unsafe { ffi::PyObject_TypeCheck(array.as_ptr(), table(py)?.class) } == 0 {
        return Ok(None);
    }
    // SAFETY: an instance of NumPy's class begins like this. It has `ndim` lengths and strides until it is given
    // another shape, which takes Python code, and none runs meanwhile.
    unsafe {
        let object = &*array.as_ptr().cast::<ArrayObject>();
        let count = usize::try_from(object.ndim).unwrap_or(0);
        let listed = |numbers: *const isize| {
            // Without axes there may be no list.
            let first = if count == 0 { NonNull::<isize>::dangling().as_ptr().cast_const() } else { numbers };
            std::slice::from_raw_parts::<'a>(first, count)
        };
        Ok(Some(Shown {
            start: object.data,
            shape: listed(object.lengths).iter().map(|length| length.unsigned_abs()).collect(),
            strides: listed(object.strides),
            dtype: Bound::from_borrowed_ptr(py, object.dtype),
            is_writable: object.flags & WRITABLE != 0,
            is_own: object.base.is_null(),
        }))
    }
}
