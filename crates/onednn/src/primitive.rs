//! Compiled primitives of the library.

use crate::library::Library;
use crate::memory::Description;
use crate::sys::{Argument, Handle, SUCCESS, USER_SCRATCHPAD, arg, query};
use std::ffi::{CStr, c_char, c_int};
use std::ptr;

/// A primitive's description, for as long as it is looked at.
pub(crate) struct Planned {
    pub(crate) handle: Handle,
    library: &'static Library,
}

impl Planned {
    /// Calls the maker of one, with attributes that make scratch memory the caller's.
    pub(crate) fn make(library: &'static Library, make: impl FnOnce(*mut Handle, Handle) -> i32) -> Result<Self, i32> {
        let functions = &library.functions;
        let (mut handle, mut attributes) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: handles are written to; the attributes live until they are destroyed here.
        let status = unsafe {
            let mut status = (functions.attr_create)(&raw mut attributes);
            if status == SUCCESS {
                status = (functions.attr_scratchpad)(attributes, USER_SCRATCHPAD);
                if status == SUCCESS {
                    status = make(&raw mut handle, attributes);
                }
                (functions.attr_destroy)(attributes);
            }
            status
        };
        if status == SUCCESS { Ok(Self { handle, library }) } else { Err(status) }
    }

    /// The layout that it wants for an operand.
    pub(crate) fn wants(&self, what: c_int) -> Result<Description, i32> {
        // SAFETY: the description lives, and its loans live as long.
        let lent = unsafe { (self.library.functions.pd_query_md)(self.handle, what, 0) };
        if lent.is_null() { Err(-1) } else { Description::lent(self.library, lent) }
    }

    /// Whether it is code made for just this, rather than products of columns or a loop for any layout.
    pub(crate) fn is_made_for_it(&self) -> bool {
        let mut name: *const c_char = ptr::null();
        // SAFETY: the description lives, and the answer is a string, which it lends.
        unsafe {
            let status = (self.library.functions.pd_query)(self.handle, query::NAME, 0, (&raw mut name).cast());
            if status != SUCCESS || name.is_null() {
                return false;
            }
            let name = CStr::from_ptr(name).to_bytes();
            [&b"jit"[..], b"brg"].iter().any(|start| name.starts_with(start))
        }
    }

    /// Compiles it.
    pub(crate) fn compile(&self) -> Result<Primitive, i32> {
        let scratchpad = self.wants(query::SCRATCHPAD).ok();
        let mut handle = ptr::null_mut();
        // SAFETY: the handle is written to; the description lives.
        let status = unsafe { (self.library.functions.primitive_create)(&raw mut handle, self.handle) };
        if status != SUCCESS {
            return Err(status);
        }
        Ok(Primitive { handle, scratchpad, library: self.library })
    }
}

impl Drop for Planned {
    fn drop(&mut self) {
        // SAFETY: it is nobody else's.
        unsafe { (self.library.functions.pd_destroy)(self.handle) };
    }
}

/// A compiled primitive: it may run on several threads at the same time, each with scratch memory of its own.
pub(crate) struct Primitive {
    handle: Handle,
    scratchpad: Option<Description>,
    library: &'static Library,
}

// SAFETY: an execution does not change a primitive without scratch memory of its own.
unsafe impl Send for Primitive {}
// SAFETY: as above.
unsafe impl Sync for Primitive {}

impl Primitive {
    /// The primitive that lays memory out anew.
    pub(crate) fn reorder(library: &'static Library, from: &Description, to: &Description) -> Result<Self, i32> {
        let engine = library.engine;
        Planned::make(library, |handle, attributes| {
            // SAFETY: the descriptions live; the handle is written to.
            unsafe { (library.functions.reorder)(handle, from.handle, engine, to.handle, engine, attributes) }
        })?
        .compile()
    }

    /// How many bytes of scratch memory it takes.
    pub(crate) fn scratch(&self) -> usize {
        self.scratchpad.as_ref().map_or(0, Description::bytes)
    }

    /// Runs on this thread.
    ///
    /// # Safety
    ///
    /// The pointers are to memory as described, not changed elsewhere, and not shared if it is written; `scratch` is to
    /// as many bytes as it takes.
    pub(crate) unsafe fn run(&self, operands: &[(c_int, &Description, *mut u8)], scratch: *mut u8) -> Result<(), i32> {
        let (library, functions) = (self.library, &self.library.functions);
        let _alone = library.alone();
        let stream = library.stream()?;
        let mut made: Vec<Argument> = Vec::with_capacity(operands.len() + 1);
        let mut status = SUCCESS;
        let own = self.scratchpad.as_ref().map(|pad| (arg::SCRATCHPAD, pad, scratch));
        for (which, description, start) in operands.iter().copied().chain(own) {
            let mut memory = ptr::null_mut();
            // SAFETY: the handle is written to; the memory is the caller's.
            status =
                unsafe { (functions.memory_create)(&raw mut memory, description.handle, library.engine, start.cast()) };
            if status != SUCCESS {
                break;
            }
            made.push(Argument { arg: which, memory });
        }
        if status == SUCCESS {
            let count = i32::try_from(made.len()).unwrap_or(0);
            // SAFETY: the arguments live until the stream has been waited for.
            status = unsafe { (functions.primitive_execute)(self.handle, stream, count, made.as_ptr()) };
            if status == SUCCESS {
                // SAFETY: the stream is this thread's.
                status = unsafe { (functions.stream_wait)(stream) };
            }
        }
        for each in made {
            // SAFETY: it is not shared.
            unsafe { (functions.memory_destroy)(each.memory) };
        }
        if status == SUCCESS { Ok(()) } else { Err(status) }
    }
}

impl Drop for Primitive {
    fn drop(&mut self) {
        // SAFETY: it is nobody else's.
        unsafe { (self.library.functions.primitive_destroy)(self.handle) };
    }
}
