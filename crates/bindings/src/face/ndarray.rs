//! The methods of `weft.NDArray`.
//!
//! Words for the package alone begin with an underscore. They stand at the end, each with its line:
//!
//! | words | for |
//! |---|---|
//! | `_part`, `_reshaped`, `_flipped`, `_strided` | views; the caller tells the tape |
//! | `_element`, `_values`, `_storage` | the one element, all values, the memory |
//! | `_stay` | pins the memory: its address goes out as a number |
//! | `_device`, `_elsewhere`, `_offset`, `_contiguous`, `_shares_buffer` | where the elements lie, and how |
//! | `_place` | the number of its device, set by the copy or the call that makes it |
//! | `_known`, `_heard` | the tape: whether it may know the value, whether it may hear an op |
//! | `_recording`, `_is_recorded`, `_recorded_writes`, `_gone` | recordings: the one it belongs to, whether this thread's changes it, how often, why it has no memory |
//! | `_now`, `_was`, `_become` | tensors that move: the handle that stands for it, one on old memory, the move |

use super::operand::Taken;
use crate::array::moves::{self, now};
use crate::array::moving;
use crate::array::operator::Operator;
use crate::array::part;
use crate::array::{NDArray, check_look};
use crate::call::{binary, in_place, indexing, unary};
use crate::engine::Engine;
use crate::interpreter::arguments;
use crate::interpreter::devices;
use crate::interpreter::dtypes;
use crate::interpreter::errors;
use crate::pushes::{Lasting, memory};
use crate::tape::listen;
use pyo3::basic::CompareOp;
use pyo3::ffi;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};
use std::ffi::c_int;
use weft_array::{Layout, recording};

#[pymethods]
#[allow(clippy::needless_pass_by_value)] // as pyo3 has it
impl NDArray {
    /// A handle of a subclass on the memory of an array; arrays of this class are made by functions alone.
    #[new]
    #[classmethod]
    #[pyo3(signature = (of=None, /))]
    fn py_new(class: &Bound<'_, PyType>, of: Option<&Bound<'_, Self>>) -> PyResult<Self> {
        let py = class.py();
        match of {
            Some(of) if !class.is(py.get_type::<Self>()) => {
                Ok(of.get().at(py, |of| Self::new(of.inner.clone(), of.owner().clone_ref(py))))
            }
            _ => Err(errors::argument_type(
                py,
                "NDArrays are made by weft.asarray, weft.empty, weft.zeros and all functions that return arrays",
            )),
        }
    }

    #[inline]
    fn __add__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf, other, Operator::Add, false)
    }

    #[inline]
    fn __radd__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf, other, Operator::Add, true)
    }

    #[inline]
    fn __iadd__(slf: &Bound<'_, Self>, other: Taken<'_>) -> PyResult<()> {
        in_place(slf, &other.0, Operator::Add)
    }

    #[inline]
    fn __sub__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf, other, Operator::Subtract, false)
    }

    #[inline]
    fn __rsub__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf, other, Operator::Subtract, true)
    }

    #[inline]
    fn __isub__(slf: &Bound<'_, Self>, other: Taken<'_>) -> PyResult<()> {
        in_place(slf, &other.0, Operator::Subtract)
    }

    #[inline]
    fn __mul__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf, other, Operator::Multiply, false)
    }

    #[inline]
    fn __rmul__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf, other, Operator::Multiply, true)
    }

    #[inline]
    fn __imul__(slf: &Bound<'_, Self>, other: Taken<'_>) -> PyResult<()> {
        in_place(slf, &other.0, Operator::Multiply)
    }

    #[inline]
    fn __truediv__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf, other, Operator::Divide, false)
    }

    #[inline]
    fn __rtruediv__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf, other, Operator::Divide, true)
    }

    #[inline]
    fn __itruediv__(slf: &Bound<'_, Self>, other: Taken<'_>) -> PyResult<()> {
        in_place(slf, &other.0, Operator::Divide)
    }

    #[inline]
    fn __floordiv__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf, other, Operator::FloorDivide, false)
    }

    #[inline]
    fn __rfloordiv__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf, other, Operator::FloorDivide, true)
    }

    #[inline]
    fn __ifloordiv__(slf: &Bound<'_, Self>, other: Taken<'_>) -> PyResult<()> {
        in_place(slf, &other.0, Operator::FloorDivide)
    }

    #[inline]
    fn __mod__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf, other, Operator::Remainder, false)
    }

    #[inline]
    fn __rmod__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf, other, Operator::Remainder, true)
    }

    #[inline]
    fn __imod__(slf: &Bound<'_, Self>, other: Taken<'_>) -> PyResult<()> {
        in_place(slf, &other.0, Operator::Remainder)
    }

    #[inline]
    fn __matmul__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf, other, Operator::Matmul, false)
    }

    #[inline]
    fn __rmatmul__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf, other, Operator::Matmul, true)
    }

    #[inline]
    fn __imatmul__(slf: &Bound<'_, Self>, other: Taken<'_>) -> PyResult<()> {
        in_place(slf, &other.0, Operator::Matmul)
    }

    #[inline]
    fn __and__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf, other, Operator::BitwiseAnd, false)
    }

    #[inline]
    fn __rand__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf, other, Operator::BitwiseAnd, true)
    }

    #[inline]
    fn __iand__(slf: &Bound<'_, Self>, other: Taken<'_>) -> PyResult<()> {
        in_place(slf, &other.0, Operator::BitwiseAnd)
    }

    #[inline]
    fn __or__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf, other, Operator::BitwiseOr, false)
    }

    #[inline]
    fn __ror__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf, other, Operator::BitwiseOr, true)
    }

    #[inline]
    fn __ior__(slf: &Bound<'_, Self>, other: Taken<'_>) -> PyResult<()> {
        in_place(slf, &other.0, Operator::BitwiseOr)
    }

    #[inline]
    fn __xor__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf, other, Operator::BitwiseXor, false)
    }

    #[inline]
    fn __rxor__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf, other, Operator::BitwiseXor, true)
    }

    #[inline]
    fn __ixor__(slf: &Bound<'_, Self>, other: Taken<'_>) -> PyResult<()> {
        in_place(slf, &other.0, Operator::BitwiseXor)
    }

    #[inline]
    fn __lshift__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf, other, Operator::BitwiseLeftShift, false)
    }

    #[inline]
    fn __rlshift__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf, other, Operator::BitwiseLeftShift, true)
    }

    #[inline]
    fn __ilshift__(slf: &Bound<'_, Self>, other: Taken<'_>) -> PyResult<()> {
        in_place(slf, &other.0, Operator::BitwiseLeftShift)
    }

    #[inline]
    fn __rshift__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf, other, Operator::BitwiseRightShift, false)
    }

    #[inline]
    fn __rrshift__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf, other, Operator::BitwiseRightShift, true)
    }

    #[inline]
    fn __irshift__(slf: &Bound<'_, Self>, other: Taken<'_>) -> PyResult<()> {
        in_place(slf, &other.0, Operator::BitwiseRightShift)
    }

    #[inline]
    fn __pow__(
        slf: &Bound<'_, Self>,
        other: &Bound<'_, PyAny>,
        modulo: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        if modulo.is_some() { Ok(slf.py().NotImplemented()) } else { binary(slf, other, Operator::Pow, false) }
    }

    #[inline]
    fn __rpow__(
        slf: &Bound<'_, Self>,
        other: &Bound<'_, PyAny>,
        modulo: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        if modulo.is_some() { Ok(slf.py().NotImplemented()) } else { binary(slf, other, Operator::Pow, true) }
    }

    fn __ipow__(slf: &Bound<'_, Self>, other: Taken<'_>, _modulo: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        in_place(slf, &other.0, Operator::Pow)
    }

    #[inline]
    fn __getitem__<'py>(slf: &Bound<'py, Self>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        indexing::get(slf, key)
    }

    #[inline]
    fn __setitem__(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        indexing::set(slf, key, value)
    }

    fn __delitem__(slf: &Bound<'_, Self>, _key: &Bound<'_, PyAny>) -> PyResult<()> {
        let shape = slf.get().shape(slf.py())?;
        let message = format!("cannot delete array elements: the array has the shape {shape}");
        Err(errors::argument_value(slf.py(), &message))
    }

    /// By identity, as of torch's tensors: `asyncio.gather` keeps its awaitables in a dict.
    fn __hash__(slf: &Bound<'_, Self>) -> usize {
        slf.as_ptr().addr() >> 4 // objects begin at multiples of 16
    }

    #[inline]
    fn __richcmp__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>, operator: CompareOp) -> PyResult<Py<PyAny>> {
        let operator = match operator {
            CompareOp::Lt => Operator::Less,
            CompareOp::Le => Operator::LessEqual,
            CompareOp::Eq => Operator::Equal,
            CompareOp::Ne => Operator::NotEqual,
            CompareOp::Gt => Operator::Greater,
            CompareOp::Ge => Operator::GreaterEqual,
        };
        binary(slf, other, operator, false)
    }

    fn __neg__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        unary(slf, Operator::Negative)
    }

    fn __pos__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        unary(slf, Operator::Positive)
    }

    fn __abs__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        unary(slf, Operator::Abs)
    }

    fn __invert__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        unary(slf, Operator::BitwiseInvert)
    }

    /// The lengths of the axes.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.at(py, |own| PyTuple::new(py, &own.inner.layout().shape))
    }

    /// Bytes from one element to the next along each axis.
    #[getter]
    fn strides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.at(py, |own| PyTuple::new(py, &own.inner.layout().strides))
    }

    /// The type of the elements, a `numpy.dtype`.
    #[getter]
    fn dtype(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.at(py, |own| dtypes::to_python(py, own.inner.dtype()))
    }

    /// The number of axes.
    #[getter]
    fn ndim(&self, py: Python<'_>) -> usize {
        self.at(py, |own| own.inner.layout().shape.len())
    }

    /// The number of elements.
    #[getter]
    fn size(&self, py: Python<'_>) -> usize {
        self.at(py, |own| own.inner.layout().size())
    }

    /// Bytes of an element.
    #[getter]
    fn itemsize(&self, py: Python<'_>) -> usize {
        self.at(py, |own| own.inner.dtype().size())
    }

    /// Bytes of all elements.
    #[getter]
    fn nbytes(&self, py: Python<'_>) -> usize {
        self.at(py, |own| own.inner.bytes())
    }

    /// The engine that runs the ops on the array.
    #[getter]
    fn engine(&self, py: Python<'_>) -> Py<Engine> {
        self.engine.clone_ref(py)
    }

    /// How many mutations were pushed on the array's memory, which its views share.
    #[getter]
    fn version(&self, py: Python<'_>) -> u64 {
        self.at(py, |own| own.inner.version())
    }

    /// Whether the array's memory must not be written to.
    #[getter]
    fn readonly(&self, py: Python<'_>) -> bool {
        self.at(py, |own| own.inner.buffer().is_readonly())
    }

    /// Waits until everything pushed so far to change the array has finished.
    ///
    /// Parameters
    /// ----------
    /// timeout : float, optional
    ///     Seconds; no limit by default.
    ///
    /// Raises
    /// ------
    /// BaseException
    ///     The exception of the op that was to make this value, the original object.
    /// WaitTimeoutError
    ///     If the time ran out. The ops go on.
    #[pyo3(signature = (timeout=None))]
    fn wait_to_read(&self, py: Python<'_>, timeout: Option<arguments::Timeout>) -> PyResult<()> {
        self.wait_for_changes(py, arguments::timeout(py, timeout)?)
    }

    /// Waits until everything pushed so far on the array has finished, reads included.
    ///
    /// Parameters and errors as for `wait_to_read`.
    #[pyo3(signature = (timeout=None))]
    fn wait_to_write(&self, py: Python<'_>, timeout: Option<arguments::Timeout>) -> PyResult<()> {
        self.wait_for_all_on_it(py, arguments::timeout(py, timeout)?)
    }

    /// Whether everything pushed so far to change the array has finished.
    ///
    /// Returns
    /// -------
    /// bool
    ///
    /// Raises
    /// ------
    /// CaptureError
    ///     While a function is recorded, for an array that is its argument or that it makes or changes.
    fn is_ready(&self, py: Python<'_>) -> PyResult<bool> {
        self.at(py, |own| {
            check_look(py, &own.inner)?;
            Ok(py.detach(|| own.inner.is_ready() && devices::is_done(&own.inner)))
        })
    }

    /// The exception of the last finished op that was to change the array, without raising it; or None.
    ///
    /// Returns
    /// -------
    /// BaseException or None
    ///
    /// Raises
    /// ------
    /// CaptureError
    ///     As for `is_ready`.
    fn exception(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let failure = self.at(py, |own| {
            check_look(py, &own.inner)?;
            Ok::<_, PyErr>(py.detach(|| own.inner.failure()))
        })?;
        Ok(failure.map(|failure| {
            failure.report();
            errors::of_failure(py, &failure).into_value(py).into_any()
        }))
    }

    #[pyo3(signature = (shape, strides, offset=0, dtype=None))]
    fn _strided(
        slf: &Bound<'_, Self>,
        shape: Vec<usize>,
        strides: Vec<isize>,
        offset: isize,
        dtype: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let slf = &now(slf);
        let own = slf.get();
        let dtype = dtype.map_or_else(|| Ok(own.inner.dtype()), dtypes::from_python)?;
        let start = own.inner.layout().offset.wrapping_add_signed(offset);
        if shape.len() != strides.len() {
            return Err(errors::argument_value(slf.py(), "shape and strides must be equally long"));
        }
        let layout = Layout { shape: shape.into(), strides: strides.into(), offset: start };
        Self::view_of(slf, layout, dtype)
    }

    /// The view that shows the elements, which lie row after row, in another shape: one integer for each axis, -1 for what is
    /// left. Nothing for anything else. Who calls it tells the tape.
    fn _reshaped(slf: &Bound<'_, Self>, shape: &Bound<'_, PyTuple>) -> PyResult<Option<Self>> {
        moves::there(slf, |slf| {
            let own = slf.get();
            if !own.inner.is_contiguous() {
                return Ok(None);
            }
            let Some(layout) = part::reshaped(&own.inner, shape) else { return Ok(None) };
            Self::view_of(slf, layout, own.inner.dtype()).map(Some)
        })
    }

    /// The view that a key of integers, slices and None names; nothing for any other key, and for one that does not fit. Who
    /// calls it tells the tape.
    fn _part(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let own = slf.get();
        if let Some(done) = moves::instead(slf, |now| Self::_part(now, key)) {
            return done;
        }
        let Some(part) = part::named(own.inner.layout(), key)? else { return Ok(None) };
        Self::view_of(slf, part, own.inner.dtype()).map(Some)
    }

    /// The view with the axes in reversed order. Who calls it tells the tape.
    fn _flipped(slf: &Bound<'_, Self>) -> PyResult<Self> {
        moves::there(slf, |slf| {
            let own = slf.get();
            let mut layout = own.inner.layout().clone();
            layout.shape.reverse();
            layout.strides.reverse();
            Self::view_of(slf, layout, own.inner.dtype())
        })
    }

    /// Waits, and answers the one element as Python has it; None for several elements, and for memory that is not the host's.
    fn _element(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.element(py)
    }

    /// The memory; of an array on a device, a copy of its elements.
    fn _storage<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.at(py, |own| {
            if own.inner.buffer().is_elsewhere() {
                return own.values(py);
            }
            memory::view(py, &own.actual(), false, Lasting::Always)
        })
    }

    /// Keeps the memory where it is, for good: its address goes out as a number.
    fn _stay(&self, py: Python<'_>) {
        self.at(py, |own| own.actual().buffer().pin_for_good());
    }

    /// Waits, and answers the values; see `values`.
    #[pyo3(name = "_values")]
    fn py_values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.values(py)
    }

    /// The number of the device on which the array's memory belongs.
    #[getter]
    fn _device(&self, py: Python<'_>) -> u16 {
        self.at(py, |own| own.inner.device())
    }

    /// Bytes before its first element in its memory.
    #[getter]
    fn _offset(&self, py: Python<'_>) -> usize {
        self.at(py, |own| own.inner.layout().offset)
    }

    /// Whether its memory is not the host's.
    #[getter]
    fn _elsewhere(&self, py: Python<'_>) -> bool {
        self.at(py, |own| own.inner.buffer().is_elsewhere())
    }

    /// Whether the tape may know something of its value.
    #[getter]
    fn _known(&self, py: Python<'_>) -> bool {
        self.at(py, |own| own.tape.is_known())
    }

    /// Whether the tape may hear an op over it: not while another op is computed by such ops.
    #[getter]
    fn _heard(&self, py: Python<'_>) -> bool {
        self.at(py, |own| own.tape.is_known()) && !listen::is_paused()
    }

    /// The name of the recording in which alone it has a place, or None.
    #[getter]
    fn _recording(&self, py: Python<'_>) -> Option<String> {
        self.at(py, |own| own.inner.buffer().recording().map(|tag| tag.name().to_owned()))
    }

    /// Why it has memory no more: "given away" to a call of a program, or "recorded" by a recording that came to nothing.
    #[getter]
    fn _gone(&self, py: Python<'_>) -> Option<&'static str> {
        self.at(py, |own| own.inner.buffer().fate())
    }

    /// Whether the recording of this thread makes or changes it.
    fn _is_recorded(&self, py: Python<'_>) -> bool {
        self.at(py, |own| recording::is_written(&own.inner))
    }

    /// How often the recording of this thread changes it so far, behind a number of that recording; None outside.
    fn _recorded_writes(&self, py: Python<'_>) -> Option<(usize, usize)> {
        self.at(py, |own| recording::writes(&own.inner))
    }

    /// Whether its elements lie row after row without gaps.
    #[getter]
    fn _contiguous(&self, py: Python<'_>) -> bool {
        self.at(py, |own| own.inner.is_contiguous())
    }

    fn _place(&self, py: Python<'_>, device: u16) {
        self.at(py, |own| own.inner.set_device(device));
    }

    fn _shares_buffer(slf: &Bound<'_, Self>, other: &Bound<'_, Self>) -> bool {
        now(slf).get().inner.buffer().is_same(now(other).get().inner.buffer())
    }

    /// The handle that stands for it after a move, or itself: one that is on the same memory for good.
    #[getter]
    fn _now(slf: &Bound<'_, Self>) -> Py<Self> {
        now(slf).unbind()
    }

    /// A handle on memory that a tensor was on before: there, of this dtype and shape.
    #[allow(clippy::needless_pass_by_value)] // extracted from a sequence
    fn _was(slf: &Bound<'_, Self>, device: u16, dtype: &Bound<'_, PyAny>, shape: Vec<usize>) -> PyResult<Option<Self>> {
        let dtype = dtypes::from_python(dtype)?;
        Ok(moving::was(slf, |array| {
            array.device() == device && array.dtype() == dtype && array.layout().shape[..] == shape[..]
        }))
    }

    /// Puts a tensor on the memory of another array.
    #[pyo3(signature = (other, /))]
    fn _become(slf: &Bound<'_, Self>, other: &Bound<'_, Self>) -> PyResult<()> {
        let py = slf.py();
        if slf.is_exact_instance_of::<Self>() {
            return Err(errors::argument_type(py, "an NDArray stays where it is: tensors alone move"));
        }
        if recording::is_open() && now(slf).get().inner.buffer().recording().is_none() {
            let message = "a program does not move a tensor that was made before it: move the tensor, or change its dtype \
                           or its shape, before the call";
            return Err(errors::capture(py, message));
        }
        if !slf.get().owner().get().inner.is_same(&other.get().owner().get().inner) {
            return Err(errors::argument_value(py, "a tensor stays with its engine"));
        }
        moving::become_same(slf, other)
    }

    /// A view of the values, after a wait; see `values`.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let (py, own) = (slf.py(), slf.get());
        let values = own.values(py)?;
        // SAFETY: `view` is to be filled; NumPy's array answers for it, and is held by it.
        if unsafe { ffi::PyObject_GetBuffer(values.as_ptr(), view, flags) } == 0 {
            Ok(())
        } else {
            Err(PyErr::fetch(py))
        }
    }

    /// There is nothing to release here: NumPy's array answers for the view. But with this it is known that a buffer lives as long as its
    /// view, and no longer with the array.
    #[allow(clippy::unused_self)] // required by pyo3
    unsafe fn __releasebuffer__(&self, _view: *mut ffi::Py_buffer) {}

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.engine)?;
        self.tape.traverse(&visit)
    }

    fn __clear__(&self) {
        self.tape.clear();
    }
}
