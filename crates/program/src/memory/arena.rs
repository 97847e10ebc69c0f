//! Memory for the temporaries of one call, taken when its first op runs and given back after its last.

use std::sync::{Mutex, OnceLock, PoisonError};
use weft_array::{Arena, Block, OutOfMemory};
use weft_engine::{Engine, Variable};

/// The memory of one call. Buffers of its temporaries hold it.
pub(crate) struct Lease {
    bytes: usize,
    block: OnceLock<Block>,
}

impl Lease {
    pub(crate) fn new(bytes: usize) -> Self {
        Self { bytes, block: OnceLock::new() }
    }
}

impl Arena for Lease {
    fn start(&self) -> Result<*mut u8, OutOfMemory> {
        if let Some(block) = self.block.get() {
            return Ok(block.start());
        }
        let block = Block::arena(self.bytes)?;
        Ok(self.block.get_or_init(|| block).start())
    }
}

/// Lets two calls of a program be under way.
#[derive(Default)]
pub(crate) struct Gates {
    /// Of the last call and of the one before: variables that their ops read.
    last: Mutex<[Option<Variable>; 2]>,
}

impl Gates {
    /// The variable of a new call, and of the one behind whose ops it begins.
    pub(crate) fn next(&self, engine: &Engine) -> (Variable, Option<Variable>) {
        let own = engine.new_variable(None);
        // In a forked child, or in an op that the other call may wait for, there is nothing to be held off.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let [newest, oldest] = std::mem::take(&mut *last);
        *last = [Some(own.clone()), newest];
        drop(last);
        (own, oldest.filter(|_| !engine.is_inside_op()))
    }
}
