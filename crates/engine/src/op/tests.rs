//! Payloads lose their type and keep their value.

use super::{Chunk, Deferred, Deliver, Op, OpContext, OpFlags, OpKind, OpPtr, Payload, PlaceOffset, RawPayload, Slab};
use crate::failure::Cause;
use std::any::Any;
use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex};

struct Nowhere;

impl Deliver for Nowhere {
    fn deliver(&self, _: OpPtr, _: Result<(), Cause>) {
        unreachable!("no payload here has a token");
    }

    fn deferred(&self) -> Option<&Deferred> {
        None
    }

    fn stray(&self, _: &str, _: Cause) {}

    fn host(&self) -> &dyn Any {
        &()
    }
}

fn run(mut payload: RawPayload) -> Result<(), Cause> {
    let mut slab = Slab::new();
    slab.supply(Chunk::new());
    let cell = slab.take();
    // SAFETY: the cell is new; the op is emptied below.
    unsafe {
        Op::fill(cell, OpKind::Fence, MaybeUninit::uninit(), &[], OpFlags::default(), 0, 0, None);
        Op::open(cell, 0);
    }
    let deliver: Arc<dyn Deliver> = Arc::new(Nowhere);
    let mut context = OpContext::new(OpPtr::from_raw(cell).expect("a cell"), &deliver);
    // SAFETY: it is run once; the op is known to nobody else.
    unsafe {
        let answer = payload.run(&mut context);
        Op::empty(cell);
        slab.give(cell);
        answer
    }
}

/// Payloads around the size that fits, and one with an alignment that does not.
#[test]
fn payloads_of_any_size_run_once() {
    fn check<T: Clone + PartialEq + std::fmt::Debug + Send + 'static>(value: &T) {
        let (held, seen) = (Arc::new(()), Arc::new(Mutex::new(None)));
        let payload = |value: T| {
            let (held, seen) = (Arc::clone(&held), Arc::clone(&seen));
            RawPayload::new(move |_: &mut OpContext<'_>| {
                drop(held);
                *seen.lock().expect("no panic") = Some(value);
                Ok(())
            })
        };
        run(payload(value.clone())).expect("it succeeds");
        assert_eq!(seen.lock().expect("no panic").take().as_ref(), Some(value));
        // SAFETY: it is discarded once.
        unsafe { payload(value.clone()).discard() };
        assert_eq!(*seen.lock().expect("no panic"), None);
        assert_eq!(Arc::strong_count(&held), 1, "run or discarded, it is dropped once");
    }
    #[repr(align(128))]
    #[derive(Clone, PartialEq, Debug)]
    struct Aligned(u8);

    check(&());
    check(&7_u64);
    check(&[7_u64; 2]);
    check(&[7_u64; 50]);
    check(&"text".to_owned());
    check(&Aligned(7));
}

/// Tells where it was pushed, small enough for a cell or not.
struct Placed<const N: usize> {
    rest: [u8; N],
    place: u64,
}

impl<const N: usize> Payload for Placed<N> {
    // SAFETY: a number of eight bytes.
    const PLACE: Option<PlaceOffset<Self>> = Some(unsafe { PlaceOffset::new(std::mem::offset_of!(Self, place)) });

    fn run(self, _: &mut OpContext<'_>) -> Result<(), Cause> {
        assert!(self.rest.iter().all(|&byte| byte == 7));
        Ok(())
    }
}

#[test]
fn the_place_of_a_push_is_known_before_and_after_the_run() {
    fn check<const N: usize>() {
        let place = 0x0123_4567_89ab_cdef;
        let mut payload = RawPayload::new(Placed { rest: [7; N], place });
        assert_eq!(payload.place().said, place);
        let deliver: Arc<dyn Deliver> = Arc::new(Nowhere);
        let mut context = OpContext::new(OpPtr(std::ptr::NonNull::dangling()), &deliver);
        // SAFETY: it is run once, and does not look at its op.
        unsafe { payload.run(&mut context) }.expect("it was as it had been");
        assert_eq!(payload.place().said, place);
    }
    check::<0>();
    check::<16>();
    check::<17>();
    check::<1000>();
}
