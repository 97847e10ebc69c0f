//! Functions and constants of `dnnl.h`, version 3.

#![allow(non_camel_case_types)] // the names of the C API

use std::ffi::{c_int, c_uint, c_void};

/// An object of the library's.
pub(crate) type Handle = *mut c_void;
pub(crate) type Status = c_int;
pub(crate) type Dims = [i64; 12];

pub(crate) const SUCCESS: Status = 0;
pub(crate) const CPU: c_int = 1;
pub(crate) const IN_ORDER: c_uint = 1;
pub(crate) const F32: c_int = 3;
/// The library chooses the layout.
pub(crate) const ANY: c_int = 1;
pub(crate) const FORWARD_TRAINING: c_int = 64;
pub(crate) const DIRECT: c_int = 1;
pub(crate) const USER_SCRATCHPAD: c_int = 1;

/// The questions to a primitive's description, or to one of memory.
pub(crate) mod query {
    use std::ffi::c_int;

    pub(crate) const NAME: c_int = 8;
    pub(crate) const STRIDES: c_int = 14;
    pub(crate) const SRC: c_int = 129;
    pub(crate) const DIFF_SRC: c_int = 130;
    pub(crate) const WEIGHTS: c_int = 131;
    pub(crate) const DIFF_WEIGHTS: c_int = 132;
    pub(crate) const DST: c_int = 133;
    pub(crate) const DIFF_DST: c_int = 134;
    pub(crate) const SCRATCHPAD: c_int = 136;
    pub(crate) const RANK: c_int = 256;
    pub(crate) const PADDED: c_int = 260;
    pub(crate) const BLOCKS: c_int = 263;
    pub(crate) const BLOCK_LENGTHS: c_int = 264;
    pub(crate) const BLOCK_AXES: c_int = 265;
}

/// Which argument of an execution a memory is.
pub(crate) mod arg {
    use std::ffi::c_int;

    pub(crate) const SRC: c_int = 1;
    pub(crate) const DST: c_int = 17;
    pub(crate) const WEIGHTS: c_int = 33;
    pub(crate) const BIAS: c_int = 41;
    pub(crate) const SCRATCHPAD: c_int = 80;
    pub(crate) const DIFF_SRC: c_int = 129;
    pub(crate) const DIFF_DST: c_int = 145;
    pub(crate) const DIFF_WEIGHTS: c_int = 161;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Argument {
    pub(crate) arg: c_int,
    pub(crate) memory: Handle,
}

#[repr(C)]
pub(crate) struct Version {
    pub(crate) major: c_int,
    pub(crate) minor: c_int,
    pub(crate) patch: c_int,
}

macro_rules! functions {
    ($($name:ident: $symbol:literal, fn($($argument:ty),*) -> $result:ty;)*) => {
        /// The functions of the library.
        pub(crate) struct Functions {
            $(pub(crate) $name: unsafe extern "C" fn($($argument),*) -> $result,)*
        }

        impl Functions {
            /// Finds all of them.
            ///
            /// # Safety
            ///
            /// The library is oneDNN's, version 3, and stays open.
            pub(crate) unsafe fn of(library: &libloading::Library) -> Result<Self, String> {
                let lacks = |symbol: &[u8]| {
                    let name = String::from_utf8_lossy(symbol);
                    format!("it lacks the function {}", name.trim_end_matches('\0'))
                };
                Ok(Self {
                    $($name: {
                        // SAFETY: these are the signatures of `dnnl.h`; the caller answers for the rest.
                        let found = unsafe { library.get::<unsafe extern "C" fn($($argument),*) -> $result>($symbol) };
                        *found.map_err(|_| lacks($symbol))?
                    },)*
                })
            }
        }
    };
}

functions! {
    engine_create: b"dnnl_engine_create\0", fn(*mut Handle, c_int, usize) -> Status;
    stream_create: b"dnnl_stream_create\0", fn(*mut Handle, Handle, c_uint) -> Status;
    stream_destroy: b"dnnl_stream_destroy\0", fn(Handle) -> Status;
    desc_with_strides: b"dnnl_memory_desc_create_with_strides\0", fn(*mut Handle, c_int, *const i64, c_int, *const i64) -> Status;
    desc_with_tag: b"dnnl_memory_desc_create_with_tag\0", fn(*mut Handle, c_int, *const i64, c_int, c_int) -> Status;
    desc_clone: b"dnnl_memory_desc_clone\0", fn(*mut Handle, Handle) -> Status;
    desc_destroy: b"dnnl_memory_desc_destroy\0", fn(Handle) -> Status;
    desc_equal: b"dnnl_memory_desc_equal\0", fn(Handle, Handle) -> c_int;
    desc_query: b"dnnl_memory_desc_query\0", fn(Handle, c_int, *mut c_void) -> Status;
    desc_size: b"dnnl_memory_desc_get_size\0", fn(Handle) -> usize;
    memory_create: b"dnnl_memory_create\0", fn(*mut Handle, Handle, Handle, *mut c_void) -> Status;
    memory_destroy: b"dnnl_memory_destroy\0", fn(Handle) -> Status;
    attr_create: b"dnnl_primitive_attr_create\0", fn(*mut Handle) -> Status;
    attr_destroy: b"dnnl_primitive_attr_destroy\0", fn(Handle) -> Status;
    attr_scratchpad: b"dnnl_primitive_attr_set_scratchpad_mode\0", fn(Handle, c_int) -> Status;
    reorder: b"dnnl_reorder_primitive_desc_create\0", fn(*mut Handle, Handle, Handle, Handle, Handle, Handle) -> Status;
    forward: b"dnnl_convolution_forward_primitive_desc_create\0", fn(*mut Handle, Handle, c_int, c_int, Handle, Handle, Handle, Handle, *const i64, *const i64, *const i64, *const i64, Handle) -> Status;
    backward_data: b"dnnl_convolution_backward_data_primitive_desc_create\0", fn(*mut Handle, Handle, c_int, Handle, Handle, Handle, *const i64, *const i64, *const i64, *const i64, Handle, Handle) -> Status;
    backward_weights: b"dnnl_convolution_backward_weights_primitive_desc_create\0", fn(*mut Handle, Handle, c_int, Handle, Handle, Handle, Handle, *const i64, *const i64, *const i64, *const i64, Handle, Handle) -> Status;
    pd_destroy: b"dnnl_primitive_desc_destroy\0", fn(Handle) -> Status;
    pd_query: b"dnnl_primitive_desc_query\0", fn(Handle, c_int, c_int, *mut c_void) -> Status;
    pd_query_md: b"dnnl_primitive_desc_query_md\0", fn(Handle, c_int, c_int) -> Handle;
    primitive_create: b"dnnl_primitive_create\0", fn(*mut Handle, Handle) -> Status;
    primitive_destroy: b"dnnl_primitive_destroy\0", fn(Handle) -> Status;
    primitive_execute: b"dnnl_primitive_execute\0", fn(Handle, Handle, c_int, *const Argument) -> Status;
    stream_wait: b"dnnl_stream_wait\0", fn(Handle) -> Status;
}
