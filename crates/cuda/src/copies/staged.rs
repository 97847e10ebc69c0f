//! Copies from and to pageable memory, by way of pinned blocks: chunk by chunk, so that the host copies one while
//! the device copies another.
//!
//! | who | when | does |
//! |---|---|---|
//! | the worker | in the issue op | fills blocks and issues copies, until all blocks are out |
//! | the poller | a chunk's fence is done | empties the block (copies out), gives it back; issues more |
//! | whoever issues the last chunk | | ends the issue op: the device's buffer is not needed any more |
//! | whoever fills or empties the last block | | lands the copy: the host's memory is not needed any more |
//!
//! One thread issues at a time (`driving`), so chunks are issued in order and no thread waits for a copy of
//! memory.

use super::copy::{HostMemory, Region, issue_host_copy};
use super::landing::{Landing, complete};
use crate::buffers::PinnedBlock;
use crate::error::CudaError;
use crate::label::Label;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weft_engine::{Completion, OpContext};

/// Blocks of one copy that are out at the same time.
const BLOCKS: usize = 4;
/// Bytes that are copied faster than another thread has taken this one's place.
const INLINE: usize = 1 << 16;

/// Which way a copy goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// To the device.
    In,
    /// To the host.
    Out,
}

#[derive(Default)]
struct Progress {
    /// The first byte that is not issued yet.
    next: usize,
    /// Bytes that the host's side has done with.
    landed: usize,
    /// Blocks out.
    out: usize,
    /// Whether some thread issues.
    driving: bool,
    /// The issue op, once its payload has returned without an end.
    token: Option<Completion>,
    failed: Option<CudaError>,
    /// Nothing when it has landed.
    landing: Option<Landing>,
}

struct Staged {
    label: Label,
    region: Region,
    host: HostMemory,
    direction: Direction,
    chunk: usize,
    progress: Mutex<Progress>,
}

// SAFETY: the host's memory may be used from any thread, as promised to HostMemory::new().
unsafe impl Sync for Staged {}

/// Starts a copy.
pub(crate) fn stage(
    context: &mut OpContext<'_>,
    label: &Label,
    region: &Region,
    host: HostMemory,
    landing: Landing,
    direction: Direction,
) -> Result<(), CudaError> {
    let (label, region) = (label.of_running(0), region.clone());
    let chunk = region.buffer.device().context().runtime.settings.chunk.max(1);
    let progress = Mutex::new(Progress { landing: Some(landing), ..Progress::default() });
    let staged = Arc::new(Staged { label, region, host, direction, chunk, progress });
    let all = staged.region.bytes <= BLOCKS * chunk;
    if !all {
        staged.lock().token = Some(context.defer());
    }
    if direction == Direction::In && staged.region.bytes > INLINE {
        weft_engine::aside(|| Staged::drive(&staged));
    } else {
        Staged::drive(&staged);
    }
    if !all {
        return Ok(());
    }
    // Without a token all chunks were issued here, or one of them was not.
    let mut progress = staged.lock();
    if progress.next == staged.region.bytes {
        return Ok(());
    }
    if progress.out > 0 {
        // Until the chunks before it have come in, the host's memory is not to be touched by others.
        progress.token = Some(context.defer());
        return Ok(());
    }
    progress.failed.clone().map_or(Ok(()), Err)
}

impl Staged {
    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Issues chunks while there are blocks, unless somebody else does.
    fn drive(staged: &Arc<Self>) {
        let mut progress = staged.lock();
        if progress.driving {
            return;
        }
        progress.driving = true;
        while progress.failed.is_none() && progress.out < BLOCKS && progress.next < staged.region.bytes {
            let start = progress.next;
            let bytes = staged.chunk.min(staged.region.bytes - start);
            progress.out += 1;
            drop(progress);
            let issued = Self::issue_chunk(staged, start, bytes);
            progress = staged.lock();
            match issued {
                Ok(()) => {
                    progress.next = start + bytes;
                    if staged.direction == Direction::In {
                        progress.landed = progress.next;
                    }
                }
                Err(error) => {
                    progress.out -= 1;
                    progress.failed.get_or_insert(error);
                }
            }
        }
        progress.driving = false;
        staged.conclude(progress);
    }

    /// Ends the ops whose ends have come.
    fn conclude(&self, mut progress: MutexGuard<'_, Progress>) {
        let issued = progress.next == self.region.bytes;
        let failed = progress.failed.clone();
        // After a failure, blocks that are out still belong to the device.
        let over = failed.is_some() && progress.out == 0;
        let token = if issued || over { progress.token.take() } else { None };
        let landed = progress.landed == self.region.bytes || over;
        let landing = if landed { progress.landing.take() } else { None };
        drop(progress);
        // Whose failure it is: the issue op's, or, when that has ended well, the land op's.
        if let Some(token) = token {
            let outcome = if issued { Ok(()) } else { failed.clone().map_or(Ok(()), Err) };
            complete(&token, outcome);
        }
        if let Some(landing) = landing {
            landing.landed(if issued { failed.map_or(Ok(()), Err) } else { Ok(()) });
        }
    }

    fn issue_chunk(staged: &Arc<Self>, start: usize, bytes: usize) -> Result<(), CudaError> {
        let block = PinnedBlock::for_chunk(staged.region.buffer.device().context(), bytes)?;
        // SAFETY: `start` lies within the host's memory.
        let host = unsafe { staged.host.start.add(start) };
        if staged.direction == Direction::In {
            // SAFETY: both hold so many bytes; the block is ours.
            unsafe { std::ptr::copy_nonoverlapping(host, block.start(), bytes) };
        }
        // SAFETY: the block is pinned, and kept until the fence is done.
        let issued = unsafe {
            let pinned = HostMemory::new(block.start(), bytes);
            issue_host_copy(&staged.label, &staged.region, start, pinned, staged.direction)
        };
        let fence = match issued {
            Ok(fence) => fence,
            Err(error) => {
                // Refused, or the device is lost; in doubt the block is.
                std::mem::forget(block);
                return Err(error);
            }
        };
        let staged = Arc::clone(staged);
        fence.when_done(move |outcome| staged.chunk_done(block, start, bytes, outcome));
        Ok(())
    }

    /// On the poller.
    fn chunk_done(self: &Arc<Self>, block: PinnedBlock, start: usize, bytes: usize, outcome: Result<(), CudaError>) {
        if outcome.is_ok() && self.direction == Direction::Out {
            // SAFETY: both hold so many bytes, and the device has written to the block.
            unsafe { std::ptr::copy_nonoverlapping(block.start(), self.host.start.add(start), bytes) };
        }
        drop(block);
        let mut progress = self.lock();
        progress.out -= 1;
        match outcome {
            Ok(()) if self.direction == Direction::Out => progress.landed += bytes,
            Ok(()) => {}
            Err(fault) => {
                progress.failed.get_or_insert(fault);
            }
        }
        drop(progress);
        Self::drive(self);
    }
}
