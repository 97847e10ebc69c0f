//! Waits for issued work: to the engine the ops have ended, on the device they may still run.

use super::errors;
use super::memory::buffer_of;
use super::runtime;
use crate::engine::wait;
use crate::interpreter::devices::Until;
use crate::interpreter::location::Location;
use crate::interpreter::stall;
use pyo3::prelude::*;
use std::time::{Duration, Instant};
use weft_array::Array;
use weft_cuda::{CudaError, Fence};
use weft_engine::{AccessKind, Wait};

fn fences(array: &Array, until: Until) -> Vec<Fence> {
    let Some(buffer) = buffer_of(array) else { return Vec::new() };
    let kind = if until == Until::Written { AccessKind::Mutate } else { AccessKind::Read };
    buffer.fences_before(&array.range(), kind)
}

/// Waits for the work that touches the array's range of its buffer.
pub(super) fn wait_for(py: Python<'_>, array: &Array, until: Until, timeout: Option<Duration>) -> PyResult<()> {
    let fences = fences(array, until);
    let (start, mut patience) = (Instant::now(), array.engine().stall_after());
    let watch = |py: Python<'_>| {
        if patience.is_some_and(|patience| start.elapsed() >= patience) {
            patience = None; // once
            if let Some(fence) = fences.iter().find(|fence| matches!(fence.is_done(), Ok(false))) {
                let label = fence.label().located(&|place| Location::of_bits(place).describe(py));
                let device = format!("cuda:{}", fence.stream().device_index());
                stall::tell_of_device(py, &device, &label.to_string(), start.elapsed());
            }
        }
    };
    wait::watching(py, timeout, watch, |wait| wait_for_each(&fences, wait), errors::broken)
}

/// Runs a wait for a device detached, with an ear for signals.
pub(super) fn for_device(
    py: Python<'_>,
    timeout: Option<Duration>,
    wait: impl FnOnce(&mut Wait<'_>) -> Result<(), CudaError> + Send,
) -> PyResult<()> {
    wait::watching(py, timeout, |_| (), wait, errors::broken)
}

fn wait_for_each(fences: &[Fence], wait: &mut Wait<'_>) -> Result<(), CudaError> {
    let (start, timeout) = (Instant::now(), wait.timeout);
    for fence in fences {
        wait.timeout = timeout.map(|timeout| timeout.saturating_sub(start.elapsed()));
        fence.wait(wait).map_err(|error| match (error, timeout) {
            (CudaError::Timeout { op, .. }, Some(after)) => CudaError::Timeout { op, after },
            (error, _) => error,
        })?;
    }
    Ok(())
}

/// Whether all that writes to the array's range of its buffer has ended on the device; so it has, if it has failed.
pub(super) fn is_done(array: &Array) -> bool {
    fences(array, Until::Read).iter().all(|fence| fence.is_done().unwrap_or(true))
}

/// Waits until all that was issued on all devices so far has ended.
pub(super) fn wait_for_devices(py: Python<'_>, timeout: Option<Duration>) -> PyResult<()> {
    let Some(cuda) = runtime::known() else { return Ok(()) };
    let start = Instant::now();
    for device in cuda.known() {
        let left = timeout.map(|timeout| timeout.saturating_sub(start.elapsed()));
        for_device(py, left, |wait| device.synchronize(wait))?;
    }
    Ok(())
}
