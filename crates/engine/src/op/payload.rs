//! The work of an op, behind a trait, stored in place where it is small.

use super::{InOrder, OpContext};
use crate::failure::{Cause, Place};
use std::ffi::c_void;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, MaybeUninit, align_of, size_of};
use std::panic::Location;

/// The work of an op, with all its accesses granted.
///
/// Payloads of up to three words are stored inside the op; larger ones are boxed. An op made by
/// [`Engine::op`](crate::Engine::op) spends one of the three on the line of its push.
/// Any `FnOnce(&mut OpContext) -> Result<(), Cause>` is a payload.
pub trait Payload: Sized + Send + 'static {
    /// Whether the payload must run inside the engine's [`Host`](crate::Host), as Python
    /// callables must hold the GIL.
    const HOSTED: bool = false;

    /// Where in it eight bytes lie that say where it was pushed, in a way of its own: for reports on engines that stand
    /// still (see [`Engine::stall_report`](crate::Engine::stall_report)).
    const PLACE: Option<PlaceOffset<Self>> = None;

    /// The queue in which it waits for its turn, if it is one whose order counts elsewhere: that of a device on whose
    /// streams the payload puts work that it does not wait for, say.
    #[inline]
    fn queue(&self) -> Option<InOrder> {
        None
    }

    /// Does the work. It runs once, on a worker.
    fn run(self, context: &mut OpContext<'_>) -> Result<(), Cause>;

    /// Takes leave without having run, as the op was skipped or cancelled: on any thread, outside of the host.
    fn discard(self) {}
}

/// Where in a payload of this type the eight bytes of its [place](Payload::PLACE) lie.
pub struct PlaceOffset<P> {
    bytes: usize,
    /// They are the address of a line of Rust.
    is_line: bool,
    of: PhantomData<fn(&P)>,
}

impl<P> PlaceOffset<P> {
    /// So many bytes behind its start, as `offset_of!` has it.
    ///
    /// ```
    /// use weft_engine::PlaceOffset;
    /// use std::mem::offset_of;
    ///
    /// struct Copy {
    ///     from: usize,
    ///     pushed_at: u64,
    /// }
    /// // SAFETY: a number of eight bytes lies there.
    /// const PLACE: PlaceOffset<Copy> = unsafe { PlaceOffset::new(offset_of!(Copy, pushed_at)) };
    /// ```
    ///
    /// Eight bytes that a payload does not have are refused by the compiler:
    ///
    /// ```compile_fail,E0080
    /// # use weft_engine::PlaceOffset;
    /// // SAFETY: none.
    /// const PLACE: PlaceOffset<u64> = unsafe { PlaceOffset::new(1) };
    /// ```
    ///
    /// # Panics
    ///
    /// If a `P` ends before the eight bytes do; at compile time, in a constant.
    ///
    /// # Safety
    ///
    /// There are eight bytes in every `P`, from this one on, that belong to fields: initialised, without padding.
    #[must_use]
    pub const unsafe fn new(bytes: usize) -> Self {
        assert!(
            bytes <= size_of::<P>() && size_of::<P>() - bytes >= size_of::<u64>(),
            "it lies outside of the payload"
        );
        Self { bytes, is_line: false, of: PhantomData }
    }

    /// The same, of the address of a [`Location`] that was exposed.
    ///
    /// # Safety
    ///
    /// As for [`new`](Self::new), and the eight bytes are always such an address.
    pub(crate) const unsafe fn line(bytes: usize) -> Self {
        // SAFETY: the caller's promise.
        Self { is_line: true, ..unsafe { Self::new(bytes) } }
    }

    /// The same place in a `Q`, of which the payload is a field that lies so many bytes behind its start.
    ///
    /// # Panics
    ///
    /// As for [`new`](Self::new).
    ///
    /// # Safety
    ///
    /// Every `Q` has a `P` there.
    #[must_use]
    pub const unsafe fn within<Q>(self, field: usize) -> PlaceOffset<Q> {
        // SAFETY: new()'s caller has promised it of `P`, this one that a `Q` has one there.
        PlaceOffset { is_line: self.is_line, ..unsafe { PlaceOffset::new(field + self.bytes) } }
    }
}

impl<P> Clone for PlaceOffset<P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for PlaceOffset<P> {}

impl<P> std::fmt::Debug for PlaceOffset<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("PlaceOffset").field(&self.bytes).finish()
    }
}

impl<F> Payload for F
where
    F: FnOnce(&mut OpContext<'_>) -> Result<(), Cause> + Send + 'static,
{
    fn run(self, context: &mut OpContext<'_>) -> Result<(), Cause> {
        self(context)
    }
}

/// A C function and its argument: `int32_t (*)(void *data)`, where 0 is success.
#[derive(Debug, Clone, Copy)]
pub struct NativeFunction {
    function: unsafe extern "C" fn(*mut c_void) -> i32,
    data: *mut c_void,
}

// SAFETY: new() makes its caller vouch for the call from any thread.
unsafe impl Send for NativeFunction {}

impl NativeFunction {
    /// A payload that calls `function(data)`.
    ///
    /// # Safety
    ///
    /// The call is sound on any thread, at any time until the op has run.
    #[must_use]
    pub const unsafe fn new(function: unsafe extern "C" fn(*mut c_void) -> i32, data: *mut c_void) -> Self {
        Self { function, data }
    }

    /// Calls it.
    #[inline]
    pub fn call(&self) -> Result<(), Cause> {
        // SAFETY: promised to new().
        match unsafe { (self.function)(self.data) } {
            0 => Ok(()),
            code => Err(Cause::Native(code)),
        }
    }
}

impl Payload for NativeFunction {
    #[inline]
    fn run(self, _: &mut OpContext<'_>) -> Result<(), Cause> {
        self.call()
    }
}

type Words = [MaybeUninit<usize>; 3];

struct Table {
    run: unsafe fn(*mut Words, &mut OpContext<'_>) -> Result<(), Cause>,
    discard: unsafe fn(*mut Words),
    hosted: bool,
    /// Where in the words the place of the push lies, and whether it is the address of a line.
    place: Option<(usize, bool)>,
}

/// A payload without its type. It is run once or discarded once; dropping it does neither.
pub(crate) struct RawPayload {
    table: &'static Table,
    words: Words,
}

/// Where in the words the place of the push lies: in the payload, or behind its box.
const fn place_of<P: Payload>() -> Option<(usize, bool)> {
    match P::PLACE {
        Some(offset) if fits::<P>() => Some((offset.bytes, offset.is_line)),
        Some(offset) => Some((size_of::<usize>(), offset.is_line)),
        None => None,
    }
}

const fn fits<P>() -> bool {
    size_of::<P>() <= size_of::<Words>() && align_of::<P>() <= align_of::<Words>()
}

/// Takes the payload out of its words.
///
/// # Safety
///
/// `words` were written by `RawPayload::new::<P>` and not taken yet.
unsafe fn take<P: Payload>(words: *mut Words) -> P {
    if fits::<P>() {
        // SAFETY: the caller's promise; new() wrote a `P` here.
        unsafe { words.cast::<P>().read() }
    } else {
        // SAFETY: the caller's promise; new() wrote a `Box<P>` here.
        unsafe { *words.cast::<Box<P>>().read() }
    }
}

unsafe fn run<P: Payload>(words: *mut Words, context: &mut OpContext<'_>) -> Result<(), Cause> {
    // SAFETY: the caller's promise, that of take().
    unsafe { take::<P>(words) }.run(context)
}

unsafe fn discard<P: Payload>(words: *mut Words) {
    // SAFETY: the caller's promise, that of take().
    unsafe { take::<P>(words) }.discard();
}

impl RawPayload {
    #[inline]
    pub(crate) fn new<P: Payload>(payload: P) -> Self {
        let table: &'static Table =
            const { &Table { run: run::<P>, discard: discard::<P>, hosted: P::HOSTED, place: place_of::<P>() } };
        let mut words: Words = [MaybeUninit::uninit(); 3];
        if fits::<P>() {
            let payload = ManuallyDrop::new(payload);
            // SAFETY: it fits, and the original is forgotten.
            unsafe { (&raw mut words).cast::<P>().write(std::ptr::read(&raw const *payload)) };
        } else {
            if let Some(offset) = P::PLACE {
                // SAFETY: the maker of the offset has promised eight bytes there. Behind the box there is room for
                // them.
                unsafe {
                    let place = (&raw const payload).cast::<u8>().add(offset.bytes).cast::<u64>().read_unaligned();
                    (&raw mut words).cast::<usize>().add(1).cast::<u64>().write_unaligned(place);
                }
            }
            // SAFETY: a box is one word.
            unsafe { (&raw mut words).cast::<Box<P>>().write(Box::new(payload)) };
        }
        Self { table, words }
    }

    #[inline]
    pub(crate) fn is_hosted(&self) -> bool {
        self.table.hosted
    }

    /// Its word for its place. These words can be read after it was run or discarded.
    pub(crate) fn place(&self) -> Place {
        let Some((offset, is_line)) = self.table.place else { return Place::default() };
        // SAFETY: new() wrote these eight bytes, as part of the payload or behind its box.
        let said = unsafe { (&raw const self.words).cast::<u8>().add(offset).cast::<u64>().read_unaligned() };
        if !is_line {
            return Place::said(said);
        }
        #[allow(clippy::cast_possible_truncation)] // it was an address
        let address = std::ptr::with_exposed_provenance::<Location<'static>>(said as usize);
        // SAFETY: the maker of the offset by line() has promised the address of a location, which lives as long as the
        // process.
        Place { said: 0, line: Some(unsafe { &*address }) }
    }

    /// Runs the payload and consumes it.
    ///
    /// # Safety
    ///
    /// It was neither run nor discarded before.
    #[inline]
    pub(crate) unsafe fn run(&mut self, context: &mut OpContext<'_>) -> Result<(), Cause> {
        // SAFETY: the table is that of the type that new() stored; the rest is the caller's.
        unsafe { (self.table.run)(&raw mut self.words, context) }
    }

    /// Drops the payload unrun.
    ///
    /// # Safety
    ///
    /// It was neither run nor discarded before.
    pub(crate) unsafe fn discard(&mut self) {
        // SAFETY: as in run().
        unsafe { (self.table.discard)(&raw mut self.words) }
    }
}
