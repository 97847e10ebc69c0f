//! The settings of an engine.

use super::memory;
use crate::EngineError;
use crate::pool::{DirectHost, Host, Policy};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The effect of a push that would exceed a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnLimit {
    /// It waits until there is room.
    #[default]
    Block,
    /// It answers [`EngineError::PendingLimit`].
    Raise,
}

/// The settings of an engine.
#[derive(Clone)]
pub struct Settings {
    /// Workers, or workers of each device's compute lane; as many as the processors by default.
    pub workers: Option<usize>,
    /// Who runs what.
    pub policy: Policy,
    /// Ops that may be pending; pushes from inside ops are exempt.
    pub max_pending_ops: u64,
    /// Bytes that pending ops may hold; pushes from inside ops are exempt. A share of the memory by default.
    pub max_pending_bytes: u64,
    /// The effect of a push over a limit.
    pub on_limit: OnLimit,
    /// For messages and names of threads.
    pub name: Option<String>,
    /// How long no op may end, while some are pending, before waiting threads are told; never if there is none.
    pub stall_after: Option<Duration>,
    /// Memory that a buffer may have at a time, in storages: more than one lets an op overwrite it while others still
    /// read the values before. The engine itself has no memory; the pushers of ops on some ask for the number.
    pub rename_limit: usize,
    /// Where hosted payloads run.
    pub host: Arc<dyn Host>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            workers: None,
            policy: Policy::default(),
            max_pending_ops: 1 << 20,
            max_pending_bytes: share_of_memory(),
            on_limit: OnLimit::default(),
            name: None,
            stall_after: Some(Duration::from_secs(30)),
            rename_limit: 2,
            host: Arc::new(DirectHost),
        }
    }
}

/// A thirty-second of the memory that this process may use, and no less than 256 MiB: ops that far ahead are enough to
/// keep all workers busy, and more of them would only hold memory. Without limit where the system does not tell its
/// memory.
fn share_of_memory() -> u64 {
    static SHARE: OnceLock<u64> = OnceLock::new();
    *SHARE.get_or_init(|| memory::available().map_or(u64::MAX, |bytes| (bytes / 32).max(256 << 20)))
}

impl Settings {
    /// Most workers an engine may be asked for.
    pub const MAX_WORKERS: usize = 4096;

    /// Most storages that a buffer may have.
    pub const MAX_RENAME_LIMIT: usize = 64;

    pub(super) fn check(&self) -> Result<(), EngineError> {
        match self.workers {
            Some(workers) if !(1..=Self::MAX_WORKERS).contains(&workers) => Err(EngineError::InvalidArgument(format!(
                "workers must be between 1 and {}, not {workers}",
                Self::MAX_WORKERS
            ))),
            _ if self.max_pending_ops == 0 => {
                Err(EngineError::InvalidArgument("max_pending_ops must be at least 1".to_owned()))
            }
            _ if self.max_pending_bytes == 0 => {
                Err(EngineError::InvalidArgument("max_pending_bytes must be at least 1".to_owned()))
            }
            _ if !(1..=Self::MAX_RENAME_LIMIT).contains(&self.rename_limit) => Err(EngineError::InvalidArgument(
                format!("rename_limit must be between 1 and {}, not {}", Self::MAX_RENAME_LIMIT, self.rename_limit),
            )),
            _ => match self.name.as_ref().and_then(|name| name.find('\0')) {
                Some(at) => Err(EngineError::InvalidArgument(format!(
                    "name must not contain a NUL character, and has one at {at}: threads are named after the engine"
                ))),
                None => Ok(()),
            },
        }
    }
}
