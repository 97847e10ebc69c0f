//! Ops on whole buffers that are pushed again and again: one look tells what they access.

use super::call::check_engine;
use super::recording;
use crate::access::{enter_whole, refuse};
use crate::memory::Pushing;
use crate::{Access, Array, ArrayError};
use weft_engine::{Accesses, Device, Engine, Payload, PushOptions, drop_later};

/// What an op does with buffers, wherever their memory is.
pub struct Prepared {
    engine: Engine,
    /// Of each buffer one array.
    arrays: Vec<(Array, Access)>,
    device: u16,
}

impl Prepared {
    /// An op that does this with the buffers of these arrays, each named once. It takes them as a whole.
    pub fn new(engine: &Engine, arrays: Vec<(Array, Access)>) -> Result<Self, ArrayError> {
        for (array, access) in &arrays {
            if *access != Access::Read {
                array.buffer().check_writable()?;
            }
            check_engine(engine, array)?;
        }
        let device = arrays.first().map_or(0, |(array, _)| array.device());
        Ok(Self { engine: engine.clone(), arrays, device })
    }

    /// The engine it is pushed to.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Its arrays, each with what is done to it.
    #[must_use]
    pub fn arrays(&self) -> &[(Array, Access)] {
        &self.arrays
    }

    /// Pushes the op, to run where its arrays belong. The caller has waited for room.
    pub fn push<P: Payload>(&self, payload: P, options: PushOptions<'_>) -> Result<(), ArrayError> {
        recording::refuse_push(options.name)?;
        refuse(self.arrays.iter().map(|(array, _)| array))?;
        let options = PushOptions { device: Device { index: self.device, ..options.device }, ..options };
        let mut accesses = Accesses::new(&self.engine);
        for (array, access) in &self.arrays {
            accesses.add(array.buffer().variable(), access.kind())?;
        }
        let mut pushing = Pushing::lock();
        let entered =
            self.arrays.iter().try_for_each(|(array, access)| enter_whole(&mut pushing, array.buffer(), *access));
        let entered = match entered {
            Ok(()) => self.engine.enqueue(payload, &mut accesses, &options),
            Err(error) => {
                drop_later(payload); // not under the lock
                Err(error)
            }
        };
        drop(pushing);
        self.engine.follow_up();
        Ok(entered?)
    }
}
