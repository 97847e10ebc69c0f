//! Renaming: an op that overwrites a whole buffer does not wait for those that still use its values.
//!
//! A buffer keeps its variable, its handles and its views. What is renamed is its memory: the op writes to a *spare*, other
//! memory of as many bytes, and a second op, pushed directly behind it under the same lock, exchanges the two.
//!
//! | op | reads | overwrites | has alone | runs |
//! |---|---|---|---|---|
//! | the overwrite | its operands | the *new values*, a buffer on the spare that nobody else knows | the spare's variable | as soon as the spare is free |
//! | `rename` | the new values | the buffer | the spare's variable | when the new values are there, and all that was pushed on the buffer before has ended |
//!
//! So whatever was pushed on the buffer before finds the old values, and whatever is pushed behind finds the new ones, through
//! handles and views alike: they meet the variables that they would have met. No address is kept from one op to the next; each
//! op asks for it when it runs. What an overwrite does not wait for is pushed long before it; what comes behind it still waits
//! until the old values have no user.
//!
//! # A spare
//!
//! | state | memory | becomes |
//! |---|---|---|
//! | none | none | in use, by a push that finds the buffer in use: its memory is allocated there and then |
//! | in use | that of the ops which are pending on it: to be written, holding new values, or, behind a `rename`, holding old ones | none, when the last of these ops has gone: the memory goes back to the pool |
//!
//! Overwrites pushed while a spare is in use queue for it, by its variable, in the order of their pushes; a buffer has
//! [`rename_limit`](weft_engine::Settings::rename_limit) - 1 of them and takes them in turn. So there are never more
//! storages than that limit, and no op allocates memory for a spare when it runs.
//!
//! # Who stays where it is
//!
//! A push does not rename, but waits as ever, where the buffer's memory is not weft's own and alone (wrapped, of an arena, of a
//! device, a few bytes), where others may know its address for good (`Storage::pin_for_good`: it was exported, or a program or
//! a device has touched it), where it is split in ranges, where the op looks at the buffer too, and where no more memory is to be
//! had, of which a trace tells. Whoever comes to know the address after the push is in time all the same, and so is who knows it for
//! a while (`Storage::pin`: a callable that runs): an exchange that finds the memory pinned copies the new values instead.
//!
//! Loops that only walk over memory are worth more in a row with their neighbours, block by block (`ops::large`) and in the cache,
//! than beside them: they do not rename, but for copies, and these only if another kind of op reads the old values.
//!
//! # Failures
//!
//! An overwrite that fails, or is skipped, fails the new values; `rename` is skipped for it and the buffer fails with the same
//! failure, begun or not as the new values are (`PushOptions::hands_on`). So `recover` answers what it would have without.

use super::split::join;
use super::{Access, Array};
use crate::memory::{Buffer, Pushing, Spare, Storage};
use std::fmt::Write;
use std::sync::{Arc, Weak};
use weft_engine::{AccessKind, Accesses, Cause, Engine, EngineError, OpContext, Payload, PushOptions, Variable};

/// Smaller buffers are not renamed: to write them takes no longer than a second op does.
const WORTH: usize = 1 << 15;

/// When it pays not to wait.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Worth {
    /// Whoever uses the values.
    Always,
    /// If ops read them that do more than walk over memory.
    BesideLong,
}

/// An overwrite that does not wait, before it is pushed.
pub(crate) struct Renaming {
    /// The new values, as the array is laid out that is overwritten.
    values: Array,
    /// The variable of the spare.
    spare: Variable,
    /// The number of the spare among the buffer's storages, of which the first one is 1; and their greatest number.
    number: (usize, usize),
    buffer: Arc<Buffer>,
}

impl Renaming {
    /// A renaming of `output` for an op on these arrays, of which it is one. None if the op is to wait.
    #[inline]
    pub(crate) fn of(output: &Array, arrays: &[(&Array, Access)], worth: Worth) -> Option<Self> {
        let engine = output.engine();
        if output.bytes() < WORTH || !output.is_flat() || engine.rename_limit() < 2 || engine.is_watched() {
            return None;
        }
        Self::of_large(output, arrays, worth)
    }

    fn of_large(output: &Array, arrays: &[(&Array, Access)], worth: Worth) -> Option<Self> {
        let (engine, buffer) = (output.engine(), output.buffer());
        let own = arrays.iter().filter(|(array, _)| array.buffer().is_same(buffer)).count();
        if own != 1 || buffer.is_readonly() || engine.is_closed() || !buffer.storage().is_ok_and(|own| own.may_move()) {
            return None;
        }
        let mut pushing = Pushing::lock();
        let ranges = buffer.ranges.get(&mut pushing);
        let variable = buffer.known_variable()?;
        let is_read = !ranges.readers.is_empty();
        if worth == Worth::BesideLong && !ranges.readers.long {
            return None;
        }
        if ranges.split || variable.is_ready() && !(is_read && engine.is_in_use(variable).unwrap_or(false)) {
            return None;
        }
        let (spares, limit) = (ranges.spares.get_or_insert_default(), engine.rename_limit());
        let at = spares.next % (limit - 1);
        if spares.each.len() <= at {
            spares.each.push(Spare { storage: Weak::new(), variable: engine.new_variable(None) });
        }
        let spare = &mut spares.each[at];
        let storage = if let Some(storage) = spare.storage.upgrade() {
            storage
        } else {
            if !engine.has_room(buffer.bytes() as u64) {
                return None;
            }
            let fresh = Storage::new(buffer.bytes());
            if fresh.start().is_err() {
                tell(buffer);
                return None;
            }
            spare.storage = Arc::downgrade(&fresh);
            fresh
        };
        let variable = spare.variable.clone();
        spares.next = at + 1;
        let device = ranges.device.unwrap_or(0);
        drop(pushing);
        let values = Array::on(buffer.beside(storage), output.layout().clone(), output.dtype()).ok()?;
        values.set_device(device);
        Some(Self { values, spare: variable, number: (at + 2, limit), buffer: Arc::clone(buffer) })
    }

    /// What the op writes instead.
    pub(crate) fn values(&self) -> &Array {
        &self.values
    }

    /// The access by which the op queues for the spare.
    pub(crate) fn access(&self) -> (&Variable, AccessKind) {
        (&self.spare, AccessKind::Exclusive)
    }

    /// Makes the new values the buffer's, directly behind the op that writes them.
    pub(crate) fn enqueue(
        self,
        pushing: &mut Pushing,
        engine: &Engine,
        options: &PushOptions<'_>,
    ) -> Result<(), EngineError> {
        let Self { values, spare, number: (number, limit), buffer } = self;
        let ranges = buffer.ranges.get(pushing);
        if ranges.split {
            join(ranges, &buffer)?; // another thread has split it since
        }
        let mut name = String::from("rename");
        if engine.is_traced() {
            let _ = write!(name, " (storage {number} of {limit})");
        }
        let options = PushOptions {
            name: Some(&name),
            priority: options.priority,
            bytes: buffer.bytes() as u64, // of the spare, which is there until this op has ended
            hands_on: true,
            ..PushOptions::default()
        };
        let mut accesses = Accesses::new(engine);
        let new = Arc::clone(values.buffer());
        accesses.add(new.variable(), AccessKind::Read)?;
        accesses.add(&spare, AccessKind::Exclusive)?;
        accesses.add(buffer.variable(), AccessKind::Overwrite)?;
        let payload = Exchange { values: Arc::clone(&new), buffer: Arc::clone(&buffer) };
        engine.enqueue(payload, &mut accesses, &options)?;
        let ranges = buffer.ranges.get(pushing);
        ranges.note(false);
        ranges.note_whole(false);
        Ok(())
    }
}

/// Tells a trace that there was no memory for a spare: the op that is pushed next waits.
#[cold]
fn tell(buffer: &Buffer) {
    let engine = buffer.engine();
    let name = engine.is_traced().then_some("not renamed: out of memory");
    let mut accesses = Accesses::new(engine);
    if name.is_some() && accesses.add(buffer.variable(), AccessKind::Read).is_ok() {
        let nothing = |_: &mut OpContext<'_>| Ok(());
        let _ = engine.enqueue(nothing, &mut accesses, &PushOptions { name, ..PushOptions::default() });
    }
}

/// The payload of `rename`. It holds the buffer, so that no other op takes its memory meanwhile.
struct Exchange {
    values: Arc<Buffer>,
    buffer: Arc<Buffer>,
}

impl Payload for Exchange {
    fn run(self, _: &mut OpContext<'_>) -> Result<(), Cause> {
        let to_cause = |error| Cause::Error(Box::new(error));
        let (new, old) = (self.values.storage().map_err(to_cause)?, self.buffer.kept());
        // SAFETY: the op overwrites the buffer, and alone has the spare with the new values.
        if unsafe { old.exchange(new) } {
            return Ok(());
        }
        let (from, to) = (new.start()?, old.start()?);
        // SAFETY: as above; both have as many bytes, and are not the same.
        unsafe { to.copy_from_nonoverlapping(from, self.buffer.bytes()) };
        Ok(())
    }
}
