//! Devices, contexts, streams and events of the simulated machine.

use super::SimulatedDriver;
use super::faults::FaultKind;
use super::state::{Event, State};
use crate::driver::DEFAULT_STREAM;
use crate::driver::{Answer, CaptureMode, ContextHandle, Devices, EventHandle, Properties, StreamHandle, Streams};
use crate::error::DriverError;
use std::cell::Cell;
use std::sync::{Arc, MutexGuard};

thread_local! {
    static MODE: Cell<CaptureMode> = const { Cell::new(CaptureMode::GLOBAL) };
    static CURRENT: Cell<usize> = const { Cell::new(0) };
}

const INVALID_CONTEXT: u32 = 201;
const INVALID_HANDLE: u32 = 400;
const IN_CAPTURE: u32 = 900;
const IMPLICIT: u32 = 906;

/// The name that CUDA gives to a code.
fn name(code: u32) -> &'static str {
    match code {
        1 => "CUDA_ERROR_INVALID_VALUE",
        2 => "CUDA_ERROR_OUT_OF_MEMORY",
        4 => "CUDA_ERROR_DEINITIALIZED",
        201 => "CUDA_ERROR_INVALID_CONTEXT",
        400 => "CUDA_ERROR_INVALID_HANDLE",
        401 => "CUDA_ERROR_ILLEGAL_STATE",
        500 => "CUDA_ERROR_NOT_FOUND",
        700 => "CUDA_ERROR_ILLEGAL_ADDRESS",
        701 => "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
        719 => "CUDA_ERROR_LAUNCH_FAILED",
        709 => "CUDA_ERROR_CONTEXT_IS_DESTROYED",
        906 => "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
        900 => "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
        _ => "CUDA_ERROR_UNKNOWN",
    }
}

pub(super) fn refuse<T>(call: &'static str, code: u32) -> Answer<T> {
    Err(DriverError { call, code, name: name(code) })
}

impl SimulatedDriver {
    /// The state, if the calling thread has a context of this machine.
    pub(super) fn inside(&self, call: &'static str) -> Answer<MutexGuard<'_, State>> {
        let state = self.state();
        let device = CURRENT.get().wrapping_sub(self.context(0));
        if device < state.devices.len() { Ok(state) } else { refuse(call, INVALID_CONTEXT) }
    }

    /// The state, if the calling thread's context is that of a device which works.
    pub(super) fn on(&self, call: &'static str) -> Answer<(MutexGuard<'_, State>, usize)> {
        let state = self.state();
        let device = CURRENT.get().wrapping_sub(self.context(0));
        match state.devices.get(device).map(|device| device.fault) {
            None => refuse(call, INVALID_CONTEXT),
            Some(Some(code)) => refuse(call, code),
            Some(None) => Ok((state, device)),
        }
    }

    /// The same, if that device has this stream.
    pub(super) fn on_stream(&self, call: &'static str, stream: StreamHandle) -> Answer<MutexGuard<'_, State>> {
        let (mut state, device) = self.on(call)?;
        *state.calls.entry(call).or_default() += 1;
        match state.streams.get(stream.0.wrapping_sub(1)) {
            Some(found) if found.alive && found.device == device => Ok(state),
            Some(found) if found.alive => refuse(call, INVALID_CONTEXT),
            _ => refuse(call, INVALID_HANDLE),
        }
    }

    /// The same, if nothing is being recorded on it: a real driver records such calls, or ends the capture, and neither
    /// is wanted. An event that is recorded there, for one, never happens.
    pub(super) fn on_running(&self, call: &'static str, stream: StreamHandle) -> Answer<MutexGuard<'_, State>> {
        let mut state = self.on_stream(call, stream)?;
        if state.streams[stream.0 - 1].capture.is_some() {
            state.hazard(format!("{call} on a stream that is captured"));
            return refuse(call, IN_CAPTURE);
        }
        Ok(state)
    }

    /// The stream that is meant: the default stream is that of the current context.
    fn meant(&self, stream: StreamHandle) -> StreamHandle {
        let device = CURRENT.get().wrapping_sub(self.context(0));
        if stream == DEFAULT_STREAM { StreamHandle(device.wrapping_add(1)) } else { stream }
    }

    pub(super) fn context(&self, device: usize) -> usize {
        // Any number that is another for each machine will do.
        Arc::as_ptr(&self.0).addr() + device
    }
}

fn live(state: &State, event: EventHandle, call: &'static str) -> Answer<usize> {
    let at = event.0.wrapping_sub(1);
    if state.events.get(at).is_some_and(|event| event.alive) { Ok(at) } else { refuse(call, INVALID_HANDLE) }
}

impl Devices for SimulatedDriver {
    fn device_count(&self) -> usize {
        self.state().devices.len()
    }

    fn properties(&self, device: usize) -> Answer<Properties> {
        let memory = self.state().settings.memory;
        let (capability, multiprocessors, shared_memory) = ((9, 0), 100, 227 << 10);
        let name = format!("Simulated device {device}");
        Ok(Properties { name, capability, multiprocessors, memory, has_pools: true, shared_memory })
    }

    fn retain_context(&self, device: usize) -> Answer<ContextHandle> {
        Ok(ContextHandle(self.context(device)))
    }

    unsafe fn release_context(&self, _: usize) -> Answer {
        Ok(())
    }

    fn current_context(&self) -> Answer<Option<ContextHandle>> {
        Ok(Some(CURRENT.get()).filter(|context| *context != 0).map(ContextHandle))
    }

    unsafe fn set_current_context(&self, context: ContextHandle) -> Answer {
        CURRENT.set(context.0);
        Ok(())
    }

    fn exchange_capture_mode(&self, mode: CaptureMode) -> Answer<CaptureMode> {
        Ok(MODE.replace(mode))
    }

    fn priorities(&self) -> Answer<(i32, i32)> {
        Ok((0, -5))
    }
}

impl Streams for SimulatedDriver {
    unsafe fn create_stream(&self, _: i32) -> Answer<StreamHandle> {
        let (mut state, device) = self.on("cuStreamCreateWithPriority")?;
        Ok(StreamHandle(state.add_stream(device) + 1))
    }

    unsafe fn destroy_stream(&self, stream: StreamHandle) -> Answer {
        self.inside("cuStreamDestroy")?.streams[stream.0 - 1].alive = false;
        Ok(())
    }

    unsafe fn create_event(&self, timed: bool) -> Answer<EventHandle> {
        let (mut state, device) = self.on("cuEventCreate")?;
        let event = Event { alive: true, timed, device, ..Event::default() };
        let at = state.free_events.pop();
        let at = at.unwrap_or_else(|| {
            state.events.push(Event::default());
            state.events.len() - 1
        });
        state.events[at] = event;
        Ok(EventHandle(at + 1))
    }

    unsafe fn destroy_event(&self, event: EventHandle) -> Answer {
        let mut state = self.inside("cuEventDestroy")?;
        let at = live(&state, event, "cuEventDestroy")?;
        state.destroy_event(at);
        Ok(())
    }

    unsafe fn record_event(&self, event: EventHandle, stream: StreamHandle) -> Answer {
        let call = "cuEventRecord";
        let is_default = stream == DEFAULT_STREAM;
        let stream = self.meant(stream);
        let mut state = self.on_running(call, stream)?;
        if is_default && let Some(spoiled) = &mut state.captured_elsewhere {
            *spoiled = true;
            return refuse(call, IMPLICIT);
        }
        let at = live(&state, event, call)?;
        if state.events[at].device != state.streams[stream.0 - 1].device {
            return refuse(call, INVALID_HANDLE);
        }
        state.record(at, stream.0 - 1);
        Ok(())
    }

    unsafe fn wait_event(&self, stream: StreamHandle, event: EventHandle) -> Answer {
        let call = "cuStreamWaitEvent";
        let stream = self.meant(stream);
        let mut state = self.on_running(call, stream)?;
        let at = live(&state, event, call)?;
        state.wait(stream.0 - 1, at);
        Ok(())
    }

    unsafe fn query_event(&self, event: EventHandle) -> Answer<bool> {
        let call = "cuEventQuery";
        let mut state = self.inside(call)?;
        if MODE.get() != CaptureMode::RELAXED
            && let Some(spoiled) = &mut state.captured_elsewhere
        {
            *spoiled = true;
            return refuse(call, IN_CAPTURE);
        }
        if let Some(code) = state.faults.strike(FaultKind::Query) {
            return refuse(call, code);
        }
        let at = live(&state, event, call)?;
        // A question gives the device time to work.
        for _ in 0..state.draw(16) {
            if !state.step() {
                break;
            }
        }
        if let Some(code) = state.devices[state.events[at].device].fault {
            return refuse(call, code);
        }
        let happened = state.events[at].executed == state.events[at].records;
        if happened {
            state.see(at);
        }
        Ok(happened)
    }

    unsafe fn is_open(&self, stream: StreamHandle) -> Answer<bool> {
        let call = "cuStreamIsCapturing";
        let state = self.inside(call)?;
        if stream == DEFAULT_STREAM {
            return Ok(state.captured_elsewhere.is_none());
        }
        let found = state.streams.get(stream.0.wrapping_sub(1));
        found.map_or_else(|| refuse(call, INVALID_HANDLE), |found| Ok(found.capture.is_none()))
    }

    unsafe fn elapsed(&self, start: EventHandle, end: EventHandle) -> Answer<f32> {
        let call = "cuEventElapsedTime";
        let state = self.inside(call)?;
        let (start, end) = (live(&state, start, call)?, live(&state, end, call)?);
        let (start, end) = (&state.events[start], &state.events[end]);
        if !(start.timed && end.timed) {
            return refuse(call, INVALID_HANDLE);
        }
        #[allow(clippy::cast_precision_loss)] // milliseconds, as the real one has them
        Ok((end.time as f32 - start.time as f32) / 1e6)
    }
}
