//! Replays on arrays: one push, with a port for each range of bytes.

use super::recording;
use crate::access::{Bound, Touched, check_open, enter_touched, refuse_bytes, unwrite};
use crate::memory::Pushing;
use crate::{Access, ArrayError};
use smallvec::SmallVec;
use std::sync::{Arc, OnceLock};
use weft_engine::{AccessKind, Engine, PortId, Replay, ReplayOptions, Variable, drop_later};

/// A push of a replay, without the data for its steps.
pub struct ReplayCall<'a> {
    /// The engine of all buffers and variables.
    pub engine: &'a Engine,
    /// The buffers, each named once.
    pub touched: &'a [Touched<'a>],
    /// Further variables with their ports and accesses.
    pub variables: &'a [(PortId, &'a Variable, AccessKind)],
    /// Priority, bytes, and whether the steps run one by one.
    pub options: ReplayOptions<'a>,
    /// Receives the versions of the buffers that the reads see, if the caller wants them.
    pub versions: Option<&'a OnceLock<Versions>>,
}

/// Versions of buffers, in the order of `touched`.
pub type Versions = SmallVec<[u64; 16]>;

/// Pushes a replay. The caller has waited for room, and guarantees that the steps touch only memory behind their ports.
pub fn push_replay<B: Send + Sync + 'static>(
    replay: &Replay<B>,
    call: &ReplayCall<'_>,
    bindings: Arc<B>,
) -> Result<(), ArrayError> {
    recording::refuse_push(call.options.push.name)?;
    for (buffer, by, touches) in call.touched {
        for touch in *touches {
            if touch.access != Access::Read {
                buffer.check_writable()?;
            }
            refuse_bytes(buffer, touch.range.start.wrapping_add_signed(*by)..touch.range.end.wrapping_add_signed(*by))?;
        }
    }
    let mut bound = Bound::default();
    let mut pushing = Pushing::lock();
    let given = call.variables.iter().map(|(_, variable, kind)| (*variable, *kind));
    let entered = check_open(call.engine, given)
        .and_then(|()| call.touched.iter().try_for_each(|touched| enter_touched(&mut pushing, *touched, &mut bound)));
    let Bound { of_buffers, own } = bound;
    let pushed = match entered {
        Ok(()) => {
            if let Some(versions) = call.versions {
                let version = |(buffer, ..): &Touched<'_>| buffer.ranges.get(&mut pushing).version;
                let _ = versions.set(call.touched.iter().map(version).collect());
            }
            let mut variables: SmallVec<[(PortId, &Variable, AccessKind); 16]> =
                of_buffers.iter().map(|(port, variable, kind)| (*port, *variable, *kind)).collect();
            variables.extend(own.iter().map(|(port, variable, kind)| (*port, variable, *kind)));
            variables.extend_from_slice(call.variables);
            let entered = call.engine.enqueue_replay(replay, &variables, bindings, &call.options);
            if entered.is_err() {
                for (buffer, ..) in call.touched {
                    unwrite(&mut pushing, buffer, own.iter().map(|(_, variable, kind)| (variable, *kind)));
                }
            }
            entered
        }
        Err(error) => {
            drop_later(bindings); // after the lock
            Err(error)
        }
    };
    drop(pushing);
    call.engine.follow_up();
    Ok(pushed?)
}
