//! Waits for issued work: to the engine the ops have ended, on the device they may still run.

use super::memory::buffer_of;
use super::runtime;
use crate::engine::wait;
use crate::interpreter::location::Location;
use crate::interpreter::stall;
use pyo3::prelude::*;
use std::time::{Duration, Instant};
use weft_array::Array;
use weft_cuda::{CudaError, Fence};
use weft_engine::{AccessKind, Wait};

/// Which ops are waited for.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Until {
    /// Those that write.
    Read,
    /// Those that read, too.
    Written,
}

fn fences(array: &Array, until: Until) -> Vec<Fence> {
    let Some(buffer) = buffer_of(array) else { return Vec::new() };
    let kind = if until == Until::Written { AccessKind::Mutate } else { AccessKind::Read };
    buffer.fences_before(&array.range(), kind)
}

/// Waits for the device, after a wait for the engine: for what touches the array's range of its buffer.
pub(crate) fn wait_for(py: Python<'_>, array: &Array, until: Until, timeout: Option<Duration>) -> PyResult<()> {
    if !array.buffer().is_elsewhere() {
        return Ok(());
    }
    let fences = fences(array, until);
    let (start, mut patience) = (Instant::now(), array.engine().stall_after());
    let watch = |py: Python<'_>| {
        if patience.is_some_and(|patience| start.elapsed() >= patience) {
            patience = None; // once
            if let Some(fence) = fences.iter().find(|fence| matches!(fence.is_done(), Ok(false))) {
                let label = fence.label().located(&|place| Location::of_bits(place).describe(py));
                stall::tell_of_device(py, &label.to_string(), fence.stream().device_index(), start.elapsed());
            }
        }
    };
    wait::watching_device(py, timeout, watch, |wait| wait_for_each(&fences, wait))
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
pub(crate) fn is_done(array: &Array) -> bool {
    fences(array, Until::Read).iter().all(|fence| fence.is_done().unwrap_or(true))
}

/// Waits until all that was issued on all devices so far has ended.
pub(crate) fn wait_for_devices(py: Python<'_>, timeout: Option<Duration>) -> PyResult<()> {
    let Some(cuda) = runtime::known() else { return Ok(()) };
    let start = Instant::now();
    for device in cuda.known() {
        let left = timeout.map(|timeout| timeout.saturating_sub(start.elapsed()));
        wait::for_device(py, left, |wait| device.synchronize(wait))?;
    }
    Ok(())
}
