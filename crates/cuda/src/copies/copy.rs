//! Copies and fills, to be issued inside of ops that were granted their accesses.

use super::landing::Landing;
use super::staged::{Direction, stage};
use crate::buffers::{BufferAccess, DeviceBuffer};
use crate::devices::{Device, Lane};
use crate::driver::Pattern;
use crate::error::CudaError;
use crate::issue::{BRIEF, Issuing, Request};
use crate::label::Label;
use crate::streams::Fence;
use std::sync::Arc;
use weft_engine::{AccessKind, OpContext};

/// Some bytes of a buffer.
#[derive(Debug, Clone)]
pub struct Region {
    pub(crate) buffer: Arc<DeviceBuffer>,
    pub(crate) offset: usize,
    pub(crate) bytes: usize,
}

impl Region {
    /// So many bytes from this one on.
    pub fn new(buffer: &Arc<DeviceBuffer>, offset: usize, bytes: usize) -> Result<Self, CudaError> {
        if offset.checked_add(bytes).is_none_or(|end| end > buffer.bytes()) {
            let all = buffer.bytes();
            let message = format!("{bytes} bytes from byte {offset} on are not all in a buffer of {all} bytes");
            return Err(CudaError::InvalidArgument(message));
        }
        Ok(Self { buffer: Arc::clone(buffer), offset, bytes })
    }

    /// All of a buffer.
    #[must_use]
    pub fn whole(buffer: &Arc<DeviceBuffer>) -> Self {
        Self { buffer: Arc::clone(buffer), offset: 0, bytes: buffer.bytes() }
    }

    /// How many bytes they are.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The device in whose memory they lie.
    #[must_use]
    pub fn device(&self) -> &Device {
        self.buffer.device()
    }

    pub(crate) fn access(&self, kind: AccessKind) -> BufferAccess {
        BufferAccess::part(&self.buffer, self.offset..self.offset + self.bytes, kind)
    }

    /// The access of what writes to all of it: an overwrite, if it is all of its buffer.
    fn overwritten(&self) -> BufferAccess {
        let is_whole = self.offset == 0 && self.bytes == self.buffer.bytes();
        self.access(if is_whole { AccessKind::Overwrite } else { AccessKind::Mutate })
    }
}

/// Host memory for a copy.
#[derive(Debug, Clone, Copy)]
pub struct HostMemory {
    pub(crate) start: *mut u8,
    pub(crate) bytes: usize,
}

// SAFETY: new() makes its caller vouch for it on any thread.
unsafe impl Send for HostMemory {}

impl HostMemory {
    /// So many bytes from this address on.
    ///
    /// # Safety
    ///
    /// They are valid, to be written to if copied to, and nobody else touches them, or changes them if copied from,
    /// until the copy has landed. They are pinned as a whole, or not at all.
    #[must_use]
    pub const unsafe fn new(start: *mut u8, bytes: usize) -> Self {
        Self { start, bytes }
    }
}

/// Repeats a pattern over some bytes.
pub fn fill(label: &Label, to: &Region, pattern: Pattern) -> Result<Fence, CudaError> {
    to.check_pattern(pattern)?;
    let accesses = [to.overwritten()];
    let request = Request { brief: to.bytes <= BRIEF, ..Request::new(label, &accesses) };
    to.device().issue(&request, |issuing| put_fill(issuing, to, 0, pattern))
}

impl Region {
    pub(crate) fn check_pattern(&self, pattern: Pattern) -> Result<(), CudaError> {
        let size = pattern.size();
        if self.bytes.is_multiple_of(size) && self.offset.is_multiple_of(size) {
            return Ok(());
        }
        let (offset, bytes) = (self.offset, self.bytes);
        let message = format!("{bytes} bytes from byte {offset} on cannot be filled with patterns of {size} bytes");
        Err(CudaError::InvalidArgument(message))
    }
}

/// Puts a fill of the region whose buffer is that of the access onto a stream.
pub(crate) fn put_fill(issuing: &Issuing<'_>, to: &Region, access: usize, pattern: Pattern) -> Result<(), CudaError> {
    if to.bytes == 0 {
        return Ok(());
    }
    let (start, count) = (issuing.addresses[access] + to.offset as u64, to.bytes / pattern.size());
    // SAFETY: the region lies in the buffer, and the stream is behind all that the access asks for.
    unsafe { issuing.driver.fill(start, pattern, count, issuing.stream.handle()) }
        .map_err(|error| issuing.refused(error))
}

/// Copies between two regions, of one device or of two.
pub fn copy(label: &Label, to: &Region, from: &Region) -> Result<Fence, CudaError> {
    check_sizes(to.bytes, from.bytes)?;
    let accesses = [from.access(AccessKind::Read), to.overwritten()];
    if to.device() == from.device() {
        let request = Request { brief: to.bytes <= BRIEF, ..Request::new(label, &accesses).moving(to.bytes) };
        return to.device().issue(&request, |issuing| put_copy(issuing, to, from));
    }
    from.device().context().share_with(to.device().context())?;
    let request = Request::new(label, &accesses).on(Lane::CopyAcross).moving(to.bytes);
    to.device().issue(&request, |issuing| {
        if to.bytes == 0 {
            return Ok(());
        }
        let (source, target) = (from.device().context().handle, to.device().context().handle);
        let (start, end) = (issuing.addresses[0] + from.offset as u64, issuing.addresses[1] + to.offset as u64);
        // SAFETY: as in put_copy().
        unsafe { issuing.driver.copy_across((end, target), (start, source), to.bytes, issuing.stream.handle()) }
            .map_err(|error| issuing.refused(error))
    })
}

/// Puts a copy within a device onto a stream; the first access is the source's, the second the target's.
pub(crate) fn put_copy(issuing: &Issuing<'_>, to: &Region, from: &Region) -> Result<(), CudaError> {
    if to.bytes == 0 {
        return Ok(());
    }
    let (start, end) = (issuing.addresses[0] + from.offset as u64, issuing.addresses[1] + to.offset as u64);
    // SAFETY: the regions lie in their buffers, and the stream is behind all that the accesses ask for.
    unsafe { issuing.driver.copy_within(end, start, to.bytes, issuing.stream.handle()) }
        .map_err(|error| issuing.refused(error))
}

pub(crate) fn check_sizes(to: usize, from: usize) -> Result<(), CudaError> {
    if to == from {
        return Ok(());
    }
    Err(CudaError::InvalidArgument(format!("{from} bytes cannot be copied to {to} bytes")))
}

/// Copies from the host. Call it in the payload of the copy's issue op; `landing` belongs to its land op.
///
/// Pageable memory has been read when the issue op ends. A large copy from there ends it later than its payload.
pub fn copy_in(
    context: &mut OpContext<'_>,
    label: &Label,
    to: &Region,
    from: HostMemory,
    landing: Landing,
) -> Result<(), CudaError> {
    host_copy(context, label, to, from, landing, Direction::In)
}

/// Copies to the host. Call it in the payload of the copy's issue op; `landing` belongs to its land op.
pub fn copy_out(
    context: &mut OpContext<'_>,
    label: &Label,
    to: HostMemory,
    from: &Region,
    landing: Landing,
) -> Result<(), CudaError> {
    host_copy(context, label, from, to, landing, Direction::Out)
}

fn host_copy(
    context: &mut OpContext<'_>,
    label: &Label,
    region: &Region,
    host: HostMemory,
    landing: Landing,
    direction: Direction,
) -> Result<(), CudaError> {
    match direction {
        Direction::In => check_sizes(region.bytes, host.bytes)?,
        Direction::Out => check_sizes(host.bytes, region.bytes)?,
    }
    // SAFETY: the memory is valid, as promised to HostMemory::new().
    if region.bytes > 0 && !unsafe { region.device().is_pinned(host.start) } {
        return stage(context, label, region, host, landing, direction);
    }
    // SAFETY: the host's memory is valid until the copy has landed.
    let fence = unsafe { issue_host_copy(label, region, 0, host, direction) }?;
    landing.behind(fence);
    Ok(())
}

/// Issues a copy from or to pinned memory: of as many bytes as that has, from this byte of the region on.
///
/// It has all of the region, though it may copy a chunk alone: nobody else has any of it before the last one is issued.
///
/// # Safety
///
/// The host's memory is pinned, and as promised to [`HostMemory::new`] until the fence is done.
pub(crate) unsafe fn issue_host_copy(
    label: &Label,
    region: &Region,
    at: usize,
    host: HostMemory,
    direction: Direction,
) -> Result<Fence, CudaError> {
    let (access, lane) = match direction {
        Direction::In if at == 0 => (region.overwritten(), Lane::CopyIn),
        Direction::In => (region.access(AccessKind::Mutate), Lane::CopyIn),
        Direction::Out => (region.access(AccessKind::Read), Lane::CopyOut),
    };
    let accesses = [access];
    let request = Request::new(label, &accesses).on(lane).moving(host.bytes);
    region.device().issue(&request, |issuing| {
        if region.bytes == 0 {
            return Ok(());
        }
        let (start, stream) = (issuing.addresses[0] + (region.offset + at) as u64, issuing.stream.handle());
        // SAFETY: the region lies in the buffer, the stream is behind all that the access asks for; the host's side
        // is the caller's promise.
        let outcome = unsafe {
            match direction {
                Direction::In => issuing.driver.copy_in(start, host.start, host.bytes, stream),
                Direction::Out => issuing.driver.copy_out(host.start, start, host.bytes, stream),
            }
        };
        outcome.map_err(|error| issuing.refused(error))
    })
}
