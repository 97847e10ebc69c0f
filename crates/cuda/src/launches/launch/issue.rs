//! Launches on their way to the driver.

use super::Launch;
use crate::driver::DeviceAddress;
use crate::error::CudaError;
use crate::issue::{Issuing, Request};
use crate::streams::Fence;
use smallvec::SmallVec;
use std::ffi::c_void;
use std::mem::offset_of;
use weft_engine::{Cause, InOrder, OpContext, Payload, PlaceOffset};

impl Launch {
    /// Puts it on a stream.
    #[inline]
    pub(crate) fn put(&self, issuing: &Issuing<'_>) -> Result<(), CudaError> {
        // SAFETY: there is a pointer for each parameter, valid by the promise to new(), and the stream is behind all
        // that the accesses ask for.
        self.packed(issuing, |parameters| unsafe { self.call(issuing, parameters) })
    }

    /// The parameters, packed, of buffers that lie at these addresses.
    #[inline]
    pub(super) fn words_at(&self, addresses: &[DeviceAddress]) -> SmallVec<[u64; 64]> {
        let mut words = SmallVec::from_slice(&self.inner.words);
        for (word, address) in self.plan().pointers.iter().zip(addresses) {
            words[*word] += address;
        }
        words
    }

    /// Hands `launch` a pointer to each parameter.
    #[inline]
    pub(super) fn packed<R>(&self, issuing: &Issuing<'_>, launch: impl FnOnce(*mut *mut c_void) -> R) -> R {
        let mut words = self.words_at(issuing.addresses);
        let mut pointers: SmallVec<[*mut c_void; 32]> = SmallVec::new();
        let mut rest = words.as_mut_ptr();
        for parameter in &self.plan().parameters {
            pointers.push(rest.cast());
            // SAFETY: check() has found all parameters given, so these are within the words, or right behind them.
            rest = unsafe { rest.add(parameter.words()) };
        }
        launch(pointers.as_mut_ptr())
    }

    /// The driver's call.
    ///
    /// # Safety
    ///
    /// There is a pointer for each parameter, and the stream is behind all that the accesses ask for.
    #[inline]
    pub(super) unsafe fn call(&self, issuing: &Issuing<'_>, parameters: *mut *mut c_void) -> Result<(), CudaError> {
        let (function, stream) = (self.kernel().function(), issuing.stream.handle());
        // SAFETY: the caller's promise, and that of new().
        unsafe { issuing.driver.launch(function, self.plan().cooperative, &self.inner.dimensions, stream, parameters) }
            .map_err(|error| issuing.refused(error))
    }

    /// Issues it, inside of an op that was granted its accesses.
    #[inline]
    pub fn issue(&self) -> Result<Fence, CudaError> {
        self.check()?;
        let request = Request {
            priority: self.inner.priority,
            place: self.place,
            stream: self.inner.stream.as_ref(),
            brief: self.inner.brief,
            ..Request::new(self.label(), self.accesses())
        };
        self.device().issue(&request, |issuing| self.put(issuing))
    }
}

impl Payload for Launch {
    // SAFETY: eight bytes: a number.
    const PLACE: Option<PlaceOffset<Self>> = Some(unsafe { PlaceOffset::new(offset_of!(Self, place)) });

    #[inline]
    fn queue(&self) -> Option<InOrder> {
        Some(self.device().queue())
    }

    fn run(self, _: &mut OpContext<'_>) -> Result<(), Cause> {
        self.issue().map(drop).map_err(Cause::from)
    }
}
