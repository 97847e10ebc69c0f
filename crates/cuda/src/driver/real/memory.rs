//! Memory and copies of the real driver.

use super::{RealDriver, SUCCESS, pointer};
use crate::driver::{Answer, ContextHandle, DeviceAddress, Memory, Pattern, PoolHandle, StreamHandle, Usage};
use cudarc::driver::sys::{self, CUmemPool_attribute as PoolAttribute};
use std::ffi::c_int;
use std::ptr::{self, NonNull};

/// Pinned memory that all contexts know as such.
const PORTABLE: u32 = 1;

// Newer headers have these in the same places: `tests/cuda/test_cuda_header.py` looks there.
const _: () = assert!(
    size_of::<sys::CUmemPoolProps>() == 88
        && std::mem::offset_of!(sys::CUmemPoolProps, allocType) == 0
        && std::mem::offset_of!(sys::CUmemPoolProps, location) == 8
        && size_of::<sys::CUmemLocation>() == 8
        && size_of::<sys::CUmemAccessDesc>() == 12
);

impl RealDriver {
    fn on(&self, device: usize) -> sys::CUmemLocation {
        sys::CUmemLocation { type_: sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, id: self.devices[device] }
    }
}

impl Memory for RealDriver {
    unsafe fn create_pool(&self, device: usize, keeps: u64) -> Answer<PoolHandle> {
        let mut pool = ptr::null_mut();
        // SAFETY: a description is plain numbers, with 0 as the default of all but these.
        let mut wanted: sys::CUmemPoolProps = unsafe { std::mem::zeroed() };
        wanted.allocType = sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
        wanted.location = self.on(device);
        // SAFETY: the description is one, and the pool has a place.
        self.check("cuMemPoolCreate", unsafe { (self.symbols.create_pool)(&raw mut pool, &raw const wanted) })?;
        let (attribute, mut keeps) = (PoolAttribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, keeps);
        // SAFETY: the pool is new; the value of this attribute is a 64-bit number.
        let code = unsafe { (self.symbols.set_pool)(pool, attribute, (&raw mut keeps).cast()) };
        self.check("cuMemPoolSetAttribute", code)?;
        Ok(PoolHandle(pool.expose_provenance()))
    }

    unsafe fn destroy_pool(&self, pool: PoolHandle) -> Answer {
        // SAFETY: the caller's promise.
        self.check("cuMemPoolDestroy", unsafe { (self.symbols.destroy_pool)(pointer(pool.0)) })
    }

    #[inline]
    unsafe fn allocate(&self, bytes: usize, pool: PoolHandle, stream: StreamHandle) -> Answer<DeviceAddress> {
        let mut address = 0;
        // SAFETY: the caller's promise; the address has a place.
        let code = unsafe { (self.symbols.allocate)(&raw mut address, bytes, pointer(pool.0), pointer(stream.0)) };
        self.check("cuMemAllocFromPoolAsync", code)?;
        Ok(address)
    }

    unsafe fn free(&self, address: DeviceAddress, stream: StreamHandle) -> Answer {
        // SAFETY: the caller's promise.
        self.check("cuMemFreeAsync", unsafe { (self.symbols.free)(address, pointer(stream.0)) })
    }

    unsafe fn trim(&self, pool: PoolHandle) -> Answer {
        // SAFETY: the caller's promise.
        self.check("cuMemPoolTrimTo", unsafe { (self.symbols.trim_pool)(pointer(pool.0), 0) })
    }

    unsafe fn usage(&self, pool: PoolHandle) -> Answer<Usage> {
        let (mut free, mut total, mut held) = (0_usize, 0_usize, 0_u64);
        let attribute = PoolAttribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT;
        // SAFETY: all have a place; the value of this attribute is a 64-bit number.
        unsafe {
            self.check("cuMemGetInfo", (self.symbols.memory_info)(&raw mut free, &raw mut total))?;
            let code = (self.symbols.ask_pool)(pointer(pool.0), attribute, (&raw mut held).cast());
            self.check("cuMemPoolGetAttribute", code)?;
        }
        Ok(Usage { free: free as u64, total: total as u64, held })
    }

    unsafe fn share_with_peer(&self, pool: PoolHandle, device: usize, peer: usize) -> Answer<bool> {
        let mut can: c_int = 0;
        // SAFETY: both are devices of ours, and the answer has a place.
        let code = unsafe { (self.symbols.can_access_peer)(&raw mut can, self.devices[peer], self.devices[device]) };
        self.check("cuDeviceCanAccessPeer", code)?;
        if can == 0 {
            return Ok(false);
        }
        let access = sys::CUmemAccessDesc {
            location: self.on(peer),
            flags: sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        };
        // SAFETY: the caller's promise, and the description is one.
        let code = unsafe { (self.symbols.share_pool)(pointer(pool.0), &raw const access, 1) };
        self.check("cuMemPoolSetAccess", code)?;
        Ok(true)
    }

    unsafe fn allocate_pinned(&self, bytes: usize) -> Answer<NonNull<u8>> {
        let mut start = ptr::null_mut();
        // SAFETY: the address has a place.
        let code = unsafe { (self.symbols.allocate_pinned)(&raw mut start, bytes, PORTABLE) };
        self.check("cuMemHostAlloc", code)?;
        NonNull::new(start.cast()).ok_or_else(|| self.error("cuMemHostAlloc", SUCCESS))
    }

    unsafe fn free_pinned(&self, start: NonNull<u8>) -> Answer {
        // SAFETY: the caller's promise.
        self.check("cuMemFreeHost", unsafe { (self.symbols.free_pinned)(start.as_ptr().cast()) })
    }

    unsafe fn is_pinned(&self, start: *const u8) -> bool {
        let mut kind = 0_u32;
        let attribute = sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
        let address = start.expose_provenance() as sys::CUdeviceptr;
        // SAFETY: the value of this attribute is a 32-bit number; an address that the driver does not know it refuses.
        let code = unsafe { (self.symbols.pointer_attribute)((&raw mut kind).cast(), attribute, address) };
        code == SUCCESS && kind == sys::CUmemorytype::CU_MEMORYTYPE_HOST as u32
    }

    unsafe fn copy_in(&self, to: DeviceAddress, from: *const u8, bytes: usize, stream: StreamHandle) -> Answer {
        // SAFETY: the caller's promise.
        let code = unsafe { (self.symbols.copy_in)(to, from.cast(), bytes, pointer(stream.0)) };
        self.check("cuMemcpyHtoDAsync", code)
    }

    unsafe fn copy_out(&self, to: *mut u8, from: DeviceAddress, bytes: usize, stream: StreamHandle) -> Answer {
        // SAFETY: the caller's promise.
        let code = unsafe { (self.symbols.copy_out)(to.cast(), from, bytes, pointer(stream.0)) };
        self.check("cuMemcpyDtoHAsync", code)
    }

    unsafe fn copy_within(&self, to: DeviceAddress, from: DeviceAddress, bytes: usize, stream: StreamHandle) -> Answer {
        // SAFETY: the caller's promise.
        self.check("cuMemcpyDtoDAsync", unsafe { (self.symbols.copy_within)(to, from, bytes, pointer(stream.0)) })
    }

    unsafe fn copy_across(
        &self,
        to: (DeviceAddress, ContextHandle),
        from: (DeviceAddress, ContextHandle),
        bytes: usize,
        stream: StreamHandle,
    ) -> Answer {
        let (target, source) = (pointer(to.1.0), pointer(from.1.0));
        // SAFETY: the caller's promise.
        let code = unsafe { (self.symbols.copy_across)(to.0, target, from.0, source, bytes, pointer(stream.0)) };
        self.check("cuMemcpyPeerAsync", code)
    }

    unsafe fn fill(&self, to: DeviceAddress, pattern: Pattern, count: usize, stream: StreamHandle) -> Answer {
        let stream = pointer(stream.0);
        // SAFETY: the caller's promise.
        let code = unsafe {
            match pattern {
                Pattern::Byte(value) => (self.symbols.fill_bytes)(to, value, count, stream),
                Pattern::Half(value) => (self.symbols.fill_halves)(to, value, count, stream),
                Pattern::Word(value) => (self.symbols.fill_words)(to, value, count, stream),
            }
        };
        self.check("cuMemsetAsync", code)
    }
}
