//! Devices, contexts, streams and events of the real driver.

use super::{NOT_READY, RealDriver, pointer};
use crate::driver::{Answer, CaptureMode, ContextHandle, Devices, EventHandle, Properties, StreamHandle, Streams};
use cudarc::driver::sys::{self, CUdevice_attribute as Attribute};
use std::ffi::{CStr, c_char, c_int};
use std::ptr;

/// `CUDA_ERROR_STREAM_CAPTURE_IMPLICIT`.
const CAPTURE_IMPLICIT: u32 = 906;
const UNCAPTURED: u32 = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE as u32;
/// A stream that does not wait for the default stream.
const NON_BLOCKING: u32 = sys::CUstream_flags_enum::CU_STREAM_NON_BLOCKING as u32;
const UNTIMED: u32 = sys::CUevent_flags_enum::CU_EVENT_DISABLE_TIMING as u32;
const TIMED: u32 = sys::CUevent_flags_enum::CU_EVENT_DEFAULT as u32;

impl RealDriver {
    fn attribute(&self, device: usize, attribute: Attribute) -> Answer<u32> {
        let mut value: c_int = 0;
        // SAFETY: the device is one of ours, and the value has a place.
        let code = unsafe { (self.symbols.device_attribute)(&raw mut value, attribute, self.devices[device]) };
        self.check("cuDeviceGetAttribute", code)?;
        Ok(u32::try_from(value).unwrap_or(0))
    }
}

impl Devices for RealDriver {
    fn device_count(&self) -> usize {
        self.devices.len()
    }

    fn properties(&self, device: usize) -> Answer<Properties> {
        let mut name: [c_char; 256] = [0; 256];
        let mut memory = 0;
        // SAFETY: the places are as long as is said, and the last character stays 0.
        unsafe {
            let handle = self.devices[device];
            self.check("cuDeviceGetName", (self.symbols.device_name)(name.as_mut_ptr(), 255, handle))?;
            self.check("cuDeviceTotalMem", (self.symbols.total_memory)(&raw mut memory, handle))?;
        }
        // SAFETY: it ends with a 0.
        let name = unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned();
        let capability = (
            self.attribute(device, Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            self.attribute(device, Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        );
        Ok(Properties {
            name,
            capability,
            multiprocessors: self.attribute(device, Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            memory: memory as u64,
            has_pools: self.attribute(device, Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)? != 0,
            shared_memory: self.attribute(device, Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
        })
    }

    fn retain_context(&self, device: usize) -> Answer<ContextHandle> {
        let mut context = ptr::null_mut();
        // SAFETY: the device is one of ours, and the context has a place.
        let code = unsafe { (self.symbols.retain_context)(&raw mut context, self.devices[device]) };
        self.check("cuDevicePrimaryCtxRetain", code)?;
        Ok(ContextHandle(context.expose_provenance()))
    }

    unsafe fn release_context(&self, device: usize) -> Answer {
        // SAFETY: the caller's promise.
        self.check("cuDevicePrimaryCtxRelease", unsafe { (self.symbols.release_context)(self.devices[device]) })
    }

    #[inline]
    fn current_context(&self) -> Answer<Option<ContextHandle>> {
        let mut context = ptr::null_mut();
        // SAFETY: the context has a place.
        self.check("cuCtxGetCurrent", unsafe { (self.symbols.context)(&raw mut context) })?;
        Ok(Some(context.expose_provenance()).filter(|handle| *handle != 0).map(ContextHandle))
    }

    #[inline]
    unsafe fn set_current_context(&self, context: ContextHandle) -> Answer {
        // SAFETY: the caller's promise.
        self.check("cuCtxSetCurrent", unsafe { (self.symbols.set_context)(pointer(context.0)) })
    }

    #[inline]
    fn exchange_capture_mode(&self, mode: CaptureMode) -> Answer<CaptureMode> {
        // A number: the driver may know modes that the binding does not.
        let mut mode = mode.0;
        // SAFETY: the mode has a place, which holds a number of the same size.
        let code = unsafe { (self.symbols.exchange_capture_mode)((&raw mut mode).cast()) };
        self.check("cuThreadExchangeStreamCaptureMode", code)?;
        Ok(CaptureMode(mode))
    }

    fn priorities(&self) -> Answer<(i32, i32)> {
        let (mut least, mut greatest) = (0, 0);
        // SAFETY: both have a place.
        let code = unsafe { (self.symbols.priorities)(&raw mut least, &raw mut greatest) };
        self.check("cuCtxGetStreamPriorityRange", code)?;
        Ok((least, greatest))
    }
}

impl Streams for RealDriver {
    unsafe fn create_stream(&self, priority: i32) -> Answer<StreamHandle> {
        let mut stream = ptr::null_mut();
        // SAFETY: the stream has a place.
        let code = unsafe { (self.symbols.create_stream)(&raw mut stream, NON_BLOCKING, priority) };
        self.check("cuStreamCreateWithPriority", code)?;
        Ok(StreamHandle(stream.expose_provenance()))
    }

    unsafe fn destroy_stream(&self, stream: StreamHandle) -> Answer {
        // SAFETY: the caller's promise.
        self.check("cuStreamDestroy", unsafe { (self.symbols.destroy_stream)(pointer(stream.0)) })
    }

    unsafe fn create_event(&self, timed: bool) -> Answer<EventHandle> {
        let mut event = ptr::null_mut();
        // SAFETY: the event has a place.
        let code = unsafe { (self.symbols.create_event)(&raw mut event, if timed { TIMED } else { UNTIMED }) };
        self.check("cuEventCreate", code)?;
        Ok(EventHandle(event.expose_provenance()))
    }

    unsafe fn destroy_event(&self, event: EventHandle) -> Answer {
        // SAFETY: the caller's promise.
        self.check("cuEventDestroy", unsafe { (self.symbols.destroy_event)(pointer(event.0)) })
    }

    #[inline]
    unsafe fn record_event(&self, event: EventHandle, stream: StreamHandle) -> Answer {
        // SAFETY: the caller's promise.
        self.check("cuEventRecord", unsafe { (self.symbols.record_event)(pointer(event.0), pointer(stream.0)) })
    }

    #[inline]
    unsafe fn wait_event(&self, stream: StreamHandle, event: EventHandle) -> Answer {
        // SAFETY: the caller's promise.
        self.check("cuStreamWaitEvent", unsafe { (self.symbols.wait_event)(pointer(stream.0), pointer(event.0), 0) })
    }

    #[inline]
    unsafe fn query_event(&self, event: EventHandle) -> Answer<bool> {
        // SAFETY: the caller's promise.
        let code = unsafe { (self.symbols.query_event)(pointer(event.0)) };
        if code == NOT_READY { Ok(false) } else { self.check("cuEventQuery", code).map(|()| true) }
    }

    unsafe fn is_open(&self, stream: StreamHandle) -> Answer<bool> {
        // A number: the driver may know states that the binding does not.
        let mut status = UNCAPTURED;
        // SAFETY: the caller's promise; the state has a place.
        let code = unsafe { (self.symbols.is_capturing)(pointer(stream.0), (&raw mut status).cast()) };
        if code == CAPTURE_IMPLICIT {
            return Ok(false);
        }
        self.check("cuStreamIsCapturing", code).map(|()| status == UNCAPTURED)
    }

    unsafe fn elapsed(&self, start: EventHandle, end: EventHandle) -> Answer<f32> {
        let mut milliseconds = 0.0;
        // SAFETY: the caller's promise; the time has a place.
        let code = unsafe { (self.symbols.elapsed)(&raw mut milliseconds, pointer(start.0), pointer(end.0)) };
        self.check("cuEventElapsedTime", code)?;
        Ok(milliseconds)
    }
}
