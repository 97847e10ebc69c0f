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
//! | none | none | in use, by a push that finds the buffer in use: its memory is allocated there and then, before the push takes the lock |
//! | in use | that of the ops which are pending on it: to be written, holding new values, or, behind a `rename`, holding old ones | none, when the last of these ops has gone: the memory goes back to the pool |
//!
//! Overwrites pushed while a spare is in use queue for it, by its variable, in the order of their pushes; a buffer has
//! [`rename_limit`](weft_engine::Settings::rename_limit) - 1 of them and takes them in turn. So there are never more
//! storages than that limit, and no op allocates memory for a spare when it runs.
//!
//! # Who stays where it is
//!
//! | memory | a push | an exchange that is pending already |
//! |---|---|---|
//! | wrapped, of an arena, of a device, split in ranges; read by the op too | waits, as ever | - |
//! | with an address that went out as a number (`Storage::pin_for_good`) | waits | copies the new values |
//! | with an export that lives (`Storage::export`: arrays of NumPy, buffers, capsules) | waits | copies |
//! | in the hands of an op that runs, or that has kept a view (`Storage::pin`) | renames | copies |
//! | none to be had for a spare, or no room | waits, and a trace tells | - |
//!
//! So whoever comes to know an address is in time, before the push or after. Steps of programs are no exception: each asks where its memory lies when
//! it runs, and has its accesses until then. A call that overwrites several arrays renames all that are in use, or waits: small ones among them, and
//! such as must stay, are no obstacle below [`WORTH`], as their new values are copied.
//!
//! On a device the memory of a buffer is renamed when an op is issued (`weft_cuda::DeviceBuffer`): to the engine nothing has to wait there.
//!
//! Loops that only walk over memory are worth more in a row with their neighbours, block by block (`ops::large`) and in the cache,
//! than beside them: they do not rename, but for copies, and these only if another kind of op reads the old values.
//!
//! # Sweeps
//!
//! Ranges that are overwritten in turn wait, each for those who use its own bytes: behind a reader of the whole they all do. To rename the whole
//! at the first of them would take a promise that the others follow, which no push gives. Until the last one has come, any look at the buffer (a
//! view, a wait, a version, an export) would have to find the new bytes in one memory and the old ones in another, and to copy the former back. What
//! needs no promise is a copy of each range behind the readers; for a copy as overwrite that takes as long as the overwrite itself would.
//!
//! # Failures
//!
//! An overwrite that fails, or is skipped, fails the new values; `rename` is skipped for it and the buffer fails with the same
//! failure, begun or not as the new values are (`PushOptions::hands_on`). So `recover` answers what it would have without.

use super::split::join;
use super::{Access, Array};
use crate::memory::{Buffer, Pushing, Spare, Storage};
use smallvec::SmallVec;
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

/// What an op finds that overwrites an array.
enum Way {
    /// Nobody uses the values before.
    Free,
    /// The op is to wait.
    Waits,
    Renamed(Renaming),
}

impl Renaming {
    /// A renaming of `output` for an op on these arrays, of which it is one. None if the op is to wait, or has nothing to wait for.
    #[inline]
    pub(crate) fn of(output: &Array, arrays: &[(&Array, Access)], worth: Worth) -> Option<Self> {
        if output.bytes() < WORTH || !may_rename(output.engine()) {
            return None;
        }
        if let Way::Renamed(renaming) = Way::of(output, arrays, worth) { Some(renaming) } else { None }
    }

    /// Renamings of the arrays that a call of others' code overwrites, by their places among its arrays: of all whose values are in
    /// use, or of none.
    #[inline]
    pub(crate) fn of_all(arrays: &[(&Array, Access)]) -> SmallVec<[(usize, Self); 1]> {
        let is_large = |(array, access): &(&Array, Access)| *access == Access::Overwrite && array.bytes() >= WORTH;
        if arrays.iter().any(is_large) { Self::of_each(arrays) } else { SmallVec::new() }
    }

    fn of_each(arrays: &[(&Array, Access)]) -> SmallVec<[(usize, Self); 1]> {
        let mut renamings = SmallVec::new();
        let stays = |(array, access): &(&Array, Access)| *access == Access::Mutate || array.buffer().is_elsewhere();
        if arrays.iter().any(stays) || !arrays.iter().all(|(array, _)| may_rename(array.engine())) {
            return renamings;
        }
        for (at, (array, _)) in arrays.iter().enumerate().filter(|(_, (_, access))| *access == Access::Overwrite) {
            match Way::of(array, arrays, Worth::Always) {
                Way::Free => {}
                Way::Waits => return SmallVec::new(),
                Way::Renamed(renaming) => renamings.push((at, renaming)),
            }
        }
        renamings
    }

    /// What the op writes instead.
    pub(crate) fn values(&self) -> &Array {
        &self.values
    }

    /// The access by which the op queues for the spare.
    pub(crate) fn access(&self) -> (Variable, AccessKind) {
        (self.spare.clone(), AccessKind::Exclusive)
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

/// Whether ops of an engine rename at all.
#[inline]
fn may_rename(engine: &Engine) -> bool {
    engine.rename_limit() > 1 && !engine.is_watched()
}

impl Way {
    fn of(output: &Array, arrays: &[(&Array, Access)], worth: Worth) -> Self {
        let (engine, buffer) = (output.engine(), output.buffer());
        let own = arrays.iter().filter(|(array, _)| array.buffer().is_same(buffer)).count();
        if own != 1 || !output.is_flat() || buffer.is_readonly() || engine.is_closed() {
            return Self::Waits;
        }
        let Ok(storage) = buffer.storage() else { return Self::Waits };
        let Some(variable) = buffer.known_variable() else { return Self::Free };
        let mut pushing = Pushing::lock();
        let ranges = buffer.ranges.get(&mut pushing);
        if ranges.split {
            return Self::Waits;
        }
        let is_read = !ranges.readers.is_empty();
        if variable.is_ready() && !(is_read && engine.is_in_use(variable).unwrap_or(false)) {
            return Self::Free;
        }
        // A few bytes are copied as fast as they are exchanged.
        let may_move = || output.bytes() < WORTH || storage.may_move() && !storage.is_exported();
        if worth == Worth::BesideLong && !ranges.readers.long || !may_move() {
            return Self::Waits;
        }
        let (spares, limit) = (ranges.spares.get_or_insert_default(), engine.rename_limit());
        let at = spares.next % (limit - 1);
        if spares.each.len() <= at {
            spares.each.push(Spare { storage: Weak::new(), variable: engine.new_variable(None) });
        }
        spares.next = at + 1;
        let (known, spare) = (spares.each[at].storage.upgrade(), spares.each[at].variable.clone());
        let device = ranges.device.unwrap_or(0);
        drop(pushing);
        let Some(storage) = known.or_else(|| allocate(buffer, at)).filter(|storage| !storage.is_exported()) else {
            return Self::Waits;
        };
        let Ok(values) = Array::on(buffer.beside(storage), output.layout().clone(), output.dtype()) else {
            return Self::Waits;
        };
        values.set_device(device);
        Self::Renamed(Renaming { values, spare, number: (at + 2, limit), buffer: Arc::clone(buffer) })
    }
}

/// Memory for a spare that has none. None if there is none to be had, or no room for it. Nothing is allocated under the lock of pushes, so
/// another push may have come first: then its memory serves both.
fn allocate(buffer: &Buffer, at: usize) -> Option<Arc<Storage>> {
    if !buffer.engine().has_room(buffer.bytes() as u64) {
        return None;
    }
    let fresh = Storage::new(buffer.bytes());
    if fresh.start().is_err() {
        tell(buffer);
        return None;
    }
    let mut pushing = Pushing::lock();
    let spare = buffer.ranges.get(&mut pushing).spares.as_mut()?.each.get_mut(at)?;
    let known = spare.storage.upgrade();
    if known.is_none() {
        spare.storage = Arc::downgrade(&fresh);
    }
    drop(pushing);
    known.or(Some(fresh))
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
