//! Memory and copies of the simulated machine.

use super::SimulatedDriver;
use super::faults::FaultKind;
use super::state::{Address, Work};
use super::streams::refuse;
use crate::driver::{Answer, ContextHandle, DeviceAddress, Memory, Pattern, PoolHandle, StreamHandle, Usage};
use crate::error::DriverError;
use std::ptr::NonNull;

const INVALID_VALUE: u32 = 1;

impl SimulatedDriver {
    fn copy(
        &self,
        (call, verb): (&'static str, &'static str),
        to: Address,
        from: Address,
        bytes: usize,
        stream: StreamHandle,
    ) -> Answer {
        let mut state = self.on_stream(call, stream)?;
        if let Some(code) = state.faults.strike(FaultKind::Copy) {
            return refuse(call, code);
        }
        state.issue(stream.0 - 1, verb, None, Work::Copy { to, from, bytes });
        Ok(())
    }
}

impl Memory for SimulatedDriver {
    unsafe fn create_pool(&self, device: usize, keeps: u64) -> Answer<PoolHandle> {
        let call = "cuMemPoolCreate";
        let mut state = self.inside(call)?;
        if keeps >= state.settings.memory {
            return refuse(call, INVALID_VALUE); // nothing would be left for other libraries
        }
        let handle = state.new_handle();
        state.pools.insert(handle, device);
        Ok(PoolHandle(handle))
    }

    unsafe fn destroy_pool(&self, pool: PoolHandle) -> Answer {
        let call = "cuMemPoolDestroy";
        let found = self.inside(call)?.pools.remove(&pool.0);
        found.map_or_else(|| refuse(call, INVALID_VALUE), |_| Ok(()))
    }

    unsafe fn allocate(&self, bytes: usize, pool: PoolHandle, stream: StreamHandle) -> Answer<DeviceAddress> {
        let call = "cuMemAllocFromPoolAsync";
        let mut state = self.on_running(call, stream)?;
        if state.pools.get(&pool.0) != Some(&state.streams[stream.0 - 1].device) {
            return refuse(call, INVALID_VALUE);
        }
        if let Some(code) = state.faults.strike(FaultKind::Allocation) {
            return refuse(call, code);
        }
        let (at, limit) = (stream.0 - 1, state.settings.memory);
        let index = state.streams[at].device;
        if bytes == 0 {
            return refuse(call, INVALID_VALUE);
        }
        if state.devices[index].in_use + bytes as u64 > limit {
            return refuse(call, DriverError::OUT_OF_MEMORY);
        }
        state.allocations += 1;
        state.devices[index].in_use += bytes as u64;
        let address = state.memory.add(index, bytes);
        let name = state.issue(at, "allocation", None, Work::Nothing);
        let clock = state.clock_of(at);
        if let Ok((_, block)) = state.memory.find(&(address..address + 1)) {
            let fresh = block.shadow.touch(0..bytes as u64, true, &name, &clock);
            debug_assert!(fresh.is_ok(), "nobody has touched it yet");
        }
        Ok(address)
    }

    unsafe fn free(&self, address: DeviceAddress, stream: StreamHandle) -> Answer {
        let call = "cuMemFreeAsync";
        let mut state = self.on_running(call, stream)?;
        if let Some(code) = state.faults.strike(FaultKind::Free) {
            return refuse(call, code);
        }
        let problem = match state.memory.find(&(address..address)) {
            Ok((start, block)) if start == address && !block.freeing => {
                block.freeing = true;
                None
            }
            Ok((start, _)) if start == address => Some("is freed twice".to_owned()),
            Ok(_) => Some("is freed and is no block".to_owned()),
            Err(problem) => Some(problem),
        };
        if let Some(problem) = problem {
            state.hazard(format!("memory at {address:#x} {problem}"));
            return refuse(call, INVALID_VALUE);
        }
        state.issue(stream.0 - 1, "free", None, Work::Free { address });
        Ok(())
    }

    unsafe fn trim(&self, _: PoolHandle) -> Answer {
        Ok(())
    }

    unsafe fn usage(&self, pool: PoolHandle) -> Answer<Usage> {
        let call = "cuMemGetInfo";
        let state = self.inside(call)?;
        let Some(&device) = state.pools.get(&pool.0) else { return refuse(call, INVALID_VALUE) };
        let (total, held) = (state.settings.memory, state.devices[device].in_use);
        Ok(Usage { free: total - held, total, held })
    }

    unsafe fn share_with_peer(&self, _: PoolHandle, _: usize, _: usize) -> Answer<bool> {
        Ok(true)
    }

    unsafe fn allocate_pinned(&self, bytes: usize) -> Answer<NonNull<u8>> {
        let (mut state, _) = self.on("cuMemHostAlloc")?;
        let mut block = vec![0; bytes].into_boxed_slice();
        let start = NonNull::new(block.as_mut_ptr()).expect("a block has an address");
        state.pinned.insert(start.addr().get(), block);
        Ok(start)
    }

    unsafe fn free_pinned(&self, start: NonNull<u8>) -> Answer {
        let mut state = self.inside("cuMemFreeHost")?;
        match state.pinned.remove(&start.addr().get()) {
            None => refuse("cuMemFreeHost", INVALID_VALUE),
            Some(block) => {
                let first = block.as_ptr() as u64;
                state.host_access(first..first + block.len() as u64, true);
                Ok(())
            }
        }
    }

    unsafe fn is_pinned(&self, start: *const u8) -> bool {
        let state = self.state();
        let below = state.pinned.range(..=start.addr()).next_back();
        below.is_some_and(|(first, block)| start.addr() < first + block.len())
    }

    unsafe fn copy_in(&self, to: DeviceAddress, from: *const u8, bytes: usize, stream: StreamHandle) -> Answer {
        let names = ("cuMemcpyHtoDAsync", "copy in");
        self.copy(names, Address::Device(to), Address::Host(from.addr()), bytes, stream)
    }

    unsafe fn copy_out(&self, to: *mut u8, from: DeviceAddress, bytes: usize, stream: StreamHandle) -> Answer {
        let names = ("cuMemcpyDtoHAsync", "copy out");
        self.copy(names, Address::Host(to.addr()), Address::Device(from), bytes, stream)
    }

    unsafe fn copy_within(&self, to: DeviceAddress, from: DeviceAddress, bytes: usize, stream: StreamHandle) -> Answer {
        let names = ("cuMemcpyDtoDAsync", "copy within");
        self.copy(names, Address::Device(to), Address::Device(from), bytes, stream)
    }

    unsafe fn copy_across(
        &self,
        to: (DeviceAddress, ContextHandle),
        from: (DeviceAddress, ContextHandle),
        bytes: usize,
        stream: StreamHandle,
    ) -> Answer {
        for (address, context) in [to, from] {
            let device = self.state().memory.find(&(address..address)).map(|(_, block)| block.device);
            if device.is_ok_and(|device| self.context(device) != context.0) {
                return refuse("cuMemcpyPeerAsync", INVALID_VALUE);
            }
        }
        let names = ("cuMemcpyPeerAsync", "copy across");
        self.copy(names, Address::Device(to.0), Address::Device(from.0), bytes, stream)
    }

    unsafe fn fill(&self, to: DeviceAddress, pattern: Pattern, count: usize, stream: StreamHandle) -> Answer {
        let mut state = self.on_stream("cuMemsetAsync", stream)?;
        let pattern: Box<[u8]> = match pattern {
            Pattern::Byte(value) => Box::new([value]),
            Pattern::Half(value) => Box::new(value.to_le_bytes()),
            Pattern::Word(value) => Box::new(value.to_le_bytes()),
        };
        state.issue(stream.0 - 1, "fill", None, Work::Fill { to, pattern, count });
        Ok(())
    }
}
