//! Checks of what is pushed: the hook that is told, waits for all engines, fingerprints of memory.

use super::process;
use crate::array::NDArray;
use crate::array::moves::all_now;
use crate::engine::wait;
use crate::engine::watching::{self, Hook};
use crate::interpreter::arguments::{self, Timeout};
use crate::interpreter::dtypes;
use crate::interpreter::location::Location;
use crate::pushes::of_core;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::time::Instant;
use weft_array::{are_finite, keep_elements, restore_elements, take_origins};
use weft_engine::EngineError;
use xxhash_rust::xxh3::xxh3_64;

/// So many bytes take longer than to leave the interpreter and come back.
const LONG: usize = 1 << 18;

/// Tells `hook` of each push of a callable or a native function from now on, on engines that live or are made: by
/// ``hook.pushing(callable, name, place, kind, inside, engine, objects)``, and then by ``hook.pushed(token, pushed)`` with what that
/// answered, unless that was None. Of one that a recording takes it is told by ``hook.recording`` with the same arguments. A call of a program outside of ops, where programs are switched off once, is
/// ``hook.calling(function, args, kwargs)``. A hook of None ends it. Engines that are made meanwhile have the `policy`, if one is given.
#[pyfunction]
#[pyo3(signature = (hook, policy=None))]
pub(crate) fn _watch(py: Python<'_>, hook: Option<Py<PyAny>>, policy: Option<String>) {
    let watched = hook.is_some();
    let before = watching::set(hook.map(|object| Hook { object, policy }));
    py.detach(|| process::living().iter().for_each(|engine| engine.watch(watched)));
    drop(before); // not under the lock
}

/// Waits until all that was pushed on any engine has finished. Answers whether it has, in that many seconds. Nothing is reported.
#[pyfunction]
pub(crate) fn _watch_drain(py: Python<'_>, timeout: Option<Timeout>) -> PyResult<bool> {
    let timeout = arguments::timeout(py, timeout)?;
    let start = Instant::now();
    let mut done = true;
    for engine in py.detach(process::living) {
        if py.detach(|| engine.stats()).pending == 0 {
            continue;
        }
        let left = timeout.map(|timeout| timeout.saturating_sub(start.elapsed()));
        let mut late = false;
        wait::detached(py, &engine, left, |wait| match engine.drain_with(wait) {
            Err(EngineError::Timeout { .. } | EngineError::Closed { .. }) => {
                late = true;
                Ok(())
            }
            other => other,
        })?;
        done &= !late;
    }
    Ok(done)
}

/// The ops whose results were the first that are not finite, in the order in which they were found, and how many ops were looked at
/// since the last call.
#[pyfunction]
pub(crate) fn _watch_origins(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let origins = take_origins();
    let answer = PyDict::new(py);
    answer.set_item("checked", origins.checked)?;
    answer.set_item("unseen", origins.unseen)?;
    let found = origins.found.into_iter().map(|origin| {
        let row = PyDict::new(py);
        row.set_item("name", &*origin.name)?;
        row.set_item("place", origin.place)?;
        row.set_item("shape", origin.result.0)?;
        row.set_item("dtype", dtypes::to_python(py, origin.result.1)?)?;
        row.set_item("read", origin.read)?;
        row.set_item("nan", origin.found.0)?;
        row.set_item("infinite", origin.found.1)?;
        row.set_item("count", origin.count)?;
        Ok(row)
    });
    answer.set_item("found", found.collect::<PyResult<Vec<_>>>()?)?;
    Ok(answer)
}

/// Whether ops pend on any engine. Asked with the GIL, which a push of Python's needs: none comes before the caller lets go of it.
fn is_pending() -> bool {
    process::living().iter().any(|engine| engine.stats().pending > 0)
}

/// Whether all elements of arrays are finite, as far as the host reaches them; None while ops pend.
#[pyfunction]
pub(crate) fn _are_finite(arrays: Vec<Bound<'_, NDArray>>) -> Option<bool> {
    if is_pending() {
        return None;
    }
    // SAFETY: no op pends, and none is pushed meanwhile; without a GIL the check calls this while no other thread pushes.
    Some(of_core(&all_now(arrays)).into_iter().all(|array| unsafe { are_finite(array) }))
}

/// The elements of arrays as bytes; None if these are more than `most`, or cannot be kept, and while ops pend.
#[pyfunction]
pub(crate) fn _keep<'py>(
    py: Python<'py>,
    arrays: Vec<Bound<'py, NDArray>>,
    most: usize,
) -> Option<Bound<'py, PyBytes>> {
    if is_pending() {
        return None;
    }
    // SAFETY: as above.
    let kept = unsafe { keep_elements(&of_core(&all_now(arrays)), most) };
    kept.map(|kept| PyBytes::new(py, &kept))
}

/// Writes such bytes back to the elements of the same arrays. False if they are of others, and while ops pend.
#[pyfunction]
pub(crate) fn _put_back(arrays: Vec<Bound<'_, NDArray>>, kept: &[u8]) -> bool {
    // SAFETY: as above.
    !is_pending() && unsafe { restore_elements(&of_core(&all_now(arrays)), kept) }
}

/// The line of a place that the hook was told of: ``file.py:12``, or None.
#[pyfunction]
pub(crate) fn _place(py: Python<'_>, place: u64) -> Option<String> {
    Location::of_bits(place).describe(py)
}

/// A number that tells the bytes of a contiguous buffer from others.
#[pyfunction]
pub(crate) fn _fingerprint(py: Python<'_>, memory: &Bound<'_, PyAny>) -> PyResult<u64> {
    let buffer = PyBuffer::<u8>::get(memory)?;
    if !buffer.is_c_contiguous() {
        return Err(PyBufferError::new_err("a fingerprint is of contiguous bytes"));
    }
    if buffer.len_bytes() == 0 {
        return Ok(xxh3_64(&[]));
    }
    // SAFETY: the buffer is held; a byte that somebody changes meanwhile is one that the answer is to tell of, whatever it reads.
    let bytes = unsafe { std::slice::from_raw_parts(buffer.buf_ptr().cast::<u8>().cast_const(), buffer.len_bytes()) };
    Ok(if bytes.len() < LONG { xxh3_64(bytes) } else { py.detach(|| xxh3_64(bytes)) })
}
