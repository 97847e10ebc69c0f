//! Pushes of ops on arrays: what they ask for, what is refused, and the way into the engine.

use crate::order::{Access, enqueue, place};
use crate::pushing::Pushing;
use crate::{Array, ArrayError, granted};
use weft_engine::{AccessKind, Accesses, Device, Engine, EngineError, Payload, PushOptions, Variable};

/// An op to be pushed: its arrays, and what the engine is told besides.
pub struct PushRequest<'a> {
    /// The engine of all arrays.
    pub engine: &'a Engine,
    /// The arrays, each with what is done to it.
    pub arrays: &'a [(&'a Array, Access)],
    /// What it accesses besides.
    pub variables: &'a [(&'a Variable, AccessKind)],
    /// Name, priority, device, bytes.
    pub options: PushOptions<'a>,
    /// Whether it runs where its arrays belong, whatever device the options say.
    pub at_arrays: bool,
    /// Whether it knows what to do with arrays whose memory is not the host's.
    pub anywhere: bool,
}

impl<'a> PushRequest<'a> {
    /// An op of the host on arrays alone, to run where they belong.
    #[must_use]
    pub fn on(engine: &'a Engine, arrays: &'a [(&'a Array, Access)], options: PushOptions<'a>) -> Self {
        Self { engine, arrays, variables: &[], options, at_arrays: true, anywhere: false }
    }

    /// The same for an op that takes arrays wherever their memory is.
    #[must_use]
    pub fn anywhere(engine: &'a Engine, arrays: &'a [(&'a Array, Access)], options: PushOptions<'a>) -> Self {
        Self { anywhere: true, ..Self::on(engine, arrays, options) }
    }

    /// Refuses what cannot be pushed. Nothing has been changed then.
    #[inline]
    fn check(&self) -> Result<(), ArrayError> {
        let suits = |(array, access): &(&Array, Access)| {
            let buffer = array.buffer();
            (*access == Access::Read || !buffer.is_readonly())
                && self.engine.is_same(buffer.engine())
                && (self.anywhere || !buffer.is_elsewhere())
        };
        if !self.arrays.iter().all(suits) {
            self.refuse()?;
        }
        granted::refuse(self.arrays.iter().map(|(array, _)| *array))?;
        self.variables
            .iter()
            .try_for_each(|(variable, kind)| Accesses::new(self.engine).add(variable, *kind).map_err(ArrayError::from))
    }

    /// Says why the arrays cannot be pushed.
    #[cold]
    fn refuse(&self) -> Result<(), ArrayError> {
        for (array, access) in self.arrays {
            if *access != Access::Read {
                array.buffer().check_writable()?;
            }
        }
        for (array, _) in self.arrays {
            check_engine(self.engine, array)?;
            if !self.anywhere {
                array.buffer().check_host()?;
            }
        }
        Ok(())
    }

    fn enqueue<P: Payload>(&self, pushing: &mut Pushing, payload: P) -> Result<(), EngineError> {
        let mut options = self.options;
        let index = place(pushing, self.arrays);
        if self.at_arrays {
            options.device = Device { index, ..options.device };
        }
        enqueue(pushing, self.engine, self.arrays, self.variables, &options, payload)
    }
}

/// Pushes an op. The caller has waited for room.
pub fn push<P: Payload>(payload: P, request: &PushRequest<'_>) -> Result<(), ArrayError> {
    request.check()?;
    let mut pushing = Pushing::lock();
    let pushed = request.enqueue(&mut pushing, payload);
    drop(pushing);
    request.engine.follow_up();
    Ok(pushed?)
}

/// Pushes two ops of one engine, the second right behind the first: no push on their arrays comes between.
pub fn push_pair<P: Payload, Q: Payload>(
    (first, request): (P, &PushRequest<'_>),
    (second, follower): (Q, &PushRequest<'_>),
) -> Result<(), ArrayError> {
    request.check()?;
    follower.check()?;
    let mut pushing = Pushing::lock();
    let pushed = request.enqueue(&mut pushing, first).and_then(|()| follower.enqueue(&mut pushing, second));
    drop(pushing);
    request.engine.follow_up();
    Ok(pushed?)
}

/// Refuses an array for an op of the host.
#[inline]
pub(crate) fn check(engine: &Engine, array: &Array) -> Result<(), ArrayError> {
    check_engine(engine, array)?;
    array.buffer().check_host()
}

/// Refuses an array of another engine.
#[inline]
pub(crate) fn check_engine(engine: &Engine, array: &Array) -> Result<(), EngineError> {
    let buffer = array.buffer();
    if !engine.is_same(buffer.engine()) {
        let variable = format!("an array of shape {:?}", array.layout().shape);
        let (owner, engine) = (buffer.engine().name().to_owned(), engine.name().to_owned());
        return Err(EngineError::WrongEngine { variable, owner, engine });
    }
    Ok(())
}
