//! The driver's functions, found by name in its library.
//!
//! `cudarc` has them all, and this module does not call them, for two reasons. It looks a function up at its first
//! call, and panics if there is none. And it answers codes as a Rust enum, so that a code newer than itself, which a
//! newer driver may well answer, would be undefined behaviour. Here codes are numbers, and a missing function is
//! found when the library is opened. That the types of arguments are right is checked against `cudarc` when this is
//! compiled.

use cudarc::driver::sys;
use libloading::Library;
use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};

macro_rules! symbols {
    (
        {$($field:ident: $symbol:ident($($argument:ty),*);)+}
        {$($extra:ident: $name:ident($($of_extra:ty),*);)+}
    ) => {
        /// The addresses of the functions. The library stays loaded for ever.
        pub(super) struct Symbols {
            $(pub(super) $field: unsafe extern "C" fn($($argument),*) -> c_uint,)+
            $(pub(super) $extra: Option<unsafe extern "C" fn($($of_extra),*) -> c_uint>,)+
            /// Apart from the others, because its argument is a code.
            pub(super) error_name: unsafe extern "C" fn(c_uint, *mut *const c_char) -> c_uint,
        }

        impl Symbols {
            /// Finds all of them, or names the first that is missing of those that must be there.
            ///
            /// # Safety
            ///
            /// The library is a CUDA driver.
            pub(super) unsafe fn find(library: &'static Library) -> Result<Self, &'static str> {
                Ok(Self {$(
                    $field: {
                        let _: unsafe fn($($argument),*) -> sys::CUresult = sys::$symbol;
                        // SAFETY: a driver's function of this name has this type; the line above compares it.
                        *unsafe { library.get(concat!(stringify!($symbol), "\0").as_bytes()) }
                            .map_err(|_| stringify!($symbol))?
                    },
                )+
                $(
                    $extra: {
                        let _: unsafe fn($($of_extra),*) -> sys::CUresult = sys::$name;
                        // SAFETY: as above.
                        unsafe { library.get(concat!(stringify!($name), "\0").as_bytes()) }.ok().map(|found| *found)
                    },
                )+
                    // SAFETY: as above; a code is a number.
                    error_name: *unsafe { library.get(b"cuGetErrorName\0") }.map_err(|_| "cuGetErrorName")?,
                })
            }
        }
    };
}

symbols! {
{
    init: cuInit(c_uint);
    driver_version: cuDriverGetVersion(*mut c_int);
    device_count: cuDeviceGetCount(*mut c_int);
    device: cuDeviceGet(*mut sys::CUdevice, c_int);
    device_name: cuDeviceGetName(*mut c_char, c_int, sys::CUdevice);
    device_attribute: cuDeviceGetAttribute(*mut c_int, sys::CUdevice_attribute, sys::CUdevice);
    total_memory: cuDeviceTotalMem_v2(*mut usize, sys::CUdevice);
    retain_context: cuDevicePrimaryCtxRetain(*mut sys::CUcontext, sys::CUdevice);
    release_context: cuDevicePrimaryCtxRelease_v2(sys::CUdevice);
    set_context: cuCtxSetCurrent(sys::CUcontext);
    context: cuCtxGetCurrent(*mut sys::CUcontext);
    exchange_capture_mode: cuThreadExchangeStreamCaptureMode(*mut sys::CUstreamCaptureMode);
    is_capturing: cuStreamIsCapturing(sys::CUstream, *mut sys::CUstreamCaptureStatus);
    priorities: cuCtxGetStreamPriorityRange(*mut c_int, *mut c_int);
    create_stream: cuStreamCreateWithPriority(*mut sys::CUstream, c_uint, c_int);
    destroy_stream: cuStreamDestroy_v2(sys::CUstream);
    wait_event: cuStreamWaitEvent(sys::CUstream, sys::CUevent, c_uint);
    create_event: cuEventCreate(*mut sys::CUevent, c_uint);
    destroy_event: cuEventDestroy_v2(sys::CUevent);
    record_event: cuEventRecord(sys::CUevent, sys::CUstream);
    query_event: cuEventQuery(sys::CUevent);
    elapsed: cuEventElapsedTime(*mut f32, sys::CUevent, sys::CUevent);
    allocate: cuMemAllocFromPoolAsync(*mut sys::CUdeviceptr, usize, sys::CUmemoryPool, sys::CUstream);
    free: cuMemFreeAsync(sys::CUdeviceptr, sys::CUstream);
    create_pool: cuMemPoolCreate(*mut sys::CUmemoryPool, *const sys::CUmemPoolProps);
    destroy_pool: cuMemPoolDestroy(sys::CUmemoryPool);
    set_pool: cuMemPoolSetAttribute(sys::CUmemoryPool, sys::CUmemPool_attribute, *mut c_void);
    ask_pool: cuMemPoolGetAttribute(sys::CUmemoryPool, sys::CUmemPool_attribute, *mut c_void);
    trim_pool: cuMemPoolTrimTo(sys::CUmemoryPool, usize);
    share_pool: cuMemPoolSetAccess(sys::CUmemoryPool, *const sys::CUmemAccessDesc, usize);
    can_access_peer: cuDeviceCanAccessPeer(*mut c_int, sys::CUdevice, sys::CUdevice);
    memory_info: cuMemGetInfo_v2(*mut usize, *mut usize);
    allocate_pinned: cuMemHostAlloc(*mut *mut c_void, usize, c_uint);
    free_pinned: cuMemFreeHost(*mut c_void);
    pointer_attribute: cuPointerGetAttribute(*mut c_void, sys::CUpointer_attribute, sys::CUdeviceptr);
    copy_in: cuMemcpyHtoDAsync_v2(sys::CUdeviceptr, *const c_void, usize, sys::CUstream);
    copy_out: cuMemcpyDtoHAsync_v2(*mut c_void, sys::CUdeviceptr, usize, sys::CUstream);
    copy_within: cuMemcpyDtoDAsync_v2(sys::CUdeviceptr, sys::CUdeviceptr, usize, sys::CUstream);
    copy_across: cuMemcpyPeerAsync(
        sys::CUdeviceptr, sys::CUcontext, sys::CUdeviceptr, sys::CUcontext, usize, sys::CUstream
    );
    fill_bytes: cuMemsetD8Async(sys::CUdeviceptr, u8, usize, sys::CUstream);
    fill_halves: cuMemsetD16Async(sys::CUdeviceptr, u16, usize, sys::CUstream);
    fill_words: cuMemsetD32Async(sys::CUdeviceptr, c_uint, usize, sys::CUstream);
    load_module: cuModuleLoadData(*mut sys::CUmodule, *const c_void);
    unload_module: cuModuleUnload(sys::CUmodule);
    function: cuModuleGetFunction(*mut sys::CUfunction, sys::CUmodule, *const c_char);
    function_attribute: cuFuncGetAttribute(*mut c_int, sys::CUfunction_attribute, sys::CUfunction);
    set_function: cuFuncSetAttribute(sys::CUfunction, sys::CUfunction_attribute, c_int);
    launch: cuLaunchKernel(
        sys::CUfunction, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, sys::CUstream,
        *mut *mut c_void, *mut *mut c_void
    );
    launch_cooperative: cuLaunchCooperativeKernel(
        sys::CUfunction, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, sys::CUstream, *mut *mut c_void
    );
    begin_capture: cuStreamBeginCapture_v2(sys::CUstream, sys::CUstreamCaptureMode);
    end_capture: cuStreamEndCapture(sys::CUstream, *mut sys::CUgraph);
    instantiate: cuGraphInstantiateWithFlags(*mut sys::CUgraphExec, sys::CUgraph, c_ulonglong);
    launch_graph: cuGraphLaunch(sys::CUgraphExec, sys::CUstream);
    destroy_graph: cuGraphDestroy(sys::CUgraph);
    destroy_executable: cuGraphExecDestroy(sys::CUgraphExec);
}
// Need not be there. Newer headers have others under these names, with more arguments; drivers keep the old ones.
{
    capture_info: cuStreamGetCaptureInfo_v2(
        sys::CUstream, *mut sys::CUstreamCaptureStatus, *mut sys::cuuint64_t, *mut sys::CUgraph,
        *mut *const sys::CUgraphNode, *mut usize
    );
    set_dependencies: cuStreamUpdateCaptureDependencies(sys::CUstream, *mut sys::CUgraphNode, usize, c_uint);
}
}
