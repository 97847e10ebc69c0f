//! Newtypes over the atomics of `std` or `loom`.

#[cfg(loom)]
use loom::sync::atomic as imp;
#[cfg(not(loom))]
use std::sync::atomic as imp;

pub(crate) use std::sync::atomic::Ordering;

macro_rules! integer {
    ($name:ident, $value:ty) => {
        #[doc = concat!("`", stringify!($name), "` of `std`, or of `loom` under the model checker.")]
        #[derive(Debug)]
        pub(crate) struct $name(imp::$name);

        #[allow(dead_code)] // every integer has the same face; not every one uses all of it
        impl $name {
            #[cfg(not(loom))]
            pub(crate) const fn new(value: $value) -> Self {
                Self(imp::$name::new(value))
            }

            #[cfg(loom)]
            pub(crate) fn new(value: $value) -> Self {
                Self(imp::$name::new(value))
            }

            #[inline]
            pub(crate) fn load(&self, order: Ordering) -> $value {
                self.0.load(order)
            }

            #[inline]
            pub(crate) fn store(&self, value: $value, order: Ordering) {
                self.0.store(value, order);
            }

            #[inline]
            pub(crate) fn swap(&self, value: $value, order: Ordering) -> $value {
                self.0.swap(value, order)
            }

            #[inline]
            pub(crate) fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.0.compare_exchange(current, new, success, failure)
            }
        }
    };
}

macro_rules! arithmetic {
    ($name:ident, $value:ty) => {
        #[allow(dead_code)] // as above
        impl $name {
            #[inline]
            pub(crate) fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                self.0.fetch_add(value, order)
            }

            #[inline]
            pub(crate) fn fetch_sub(&self, value: $value, order: Ordering) -> $value {
                self.0.fetch_sub(value, order)
            }
        }
    };
}

macro_rules! bits {
    ($name:ident, $value:ty) => {
        #[allow(dead_code)] // as above
        impl $name {
            #[inline]
            pub(crate) fn fetch_or(&self, value: $value, order: Ordering) -> $value {
                self.0.fetch_or(value, order)
            }

            #[inline]
            pub(crate) fn fetch_and(&self, value: $value, order: Ordering) -> $value {
                self.0.fetch_and(value, order)
            }
        }
    };
}

integer!(AtomicBool, bool);
integer!(AtomicU32, u32);
integer!(AtomicU64, u64);
integer!(AtomicUsize, usize);
arithmetic!(AtomicU32, u32);
bits!(AtomicU32, u32);
bits!(AtomicU64, u64);
arithmetic!(AtomicU64, u64);
arithmetic!(AtomicUsize, usize);

/// `AtomicPtr` of `std`, or of `loom` under the model checker.
#[derive(Debug)]
pub(crate) struct AtomicPtr<T>(imp::AtomicPtr<T>);

impl<T> AtomicPtr<T> {
    pub(crate) fn new(pointer: *mut T) -> Self {
        Self(imp::AtomicPtr::new(pointer))
    }

    #[inline]
    pub(crate) fn load(&self, order: Ordering) -> *mut T {
        self.0.load(order)
    }

    #[inline]
    pub(crate) fn store(&self, pointer: *mut T, order: Ordering) {
        self.0.store(pointer, order);
    }

    #[inline]
    pub(crate) fn swap(&self, pointer: *mut T, order: Ordering) -> *mut T {
        self.0.swap(pointer, order)
    }

    #[inline]
    pub(crate) fn compare_exchange(
        &self,
        current: *mut T,
        new: *mut T,
        success: Ordering,
        failure: Ordering,
    ) -> Result<*mut T, *mut T> {
        self.0.compare_exchange(current, new, success, failure)
    }

    #[inline]
    pub(crate) fn compare_exchange_weak(
        &self,
        current: *mut T,
        new: *mut T,
        success: Ordering,
        failure: Ordering,
    ) -> Result<*mut T, *mut T> {
        self.0.compare_exchange_weak(current, new, success, failure)
    }
}

/// A `SeqCst` fence for the place right behind a `SeqCst` read-modify-write.
///
/// In the memory model of Rust a `SeqCst` read-modify-write followed by a `SeqCst` load, and by no weaker one, needs no
/// fence between them to take part in a store-load handshake (Dekker), and on x86 the first is
/// a full barrier already. loom weakens `SeqCst` accesses to `AcqRel`, so there, and only there,
/// the fence is spelled out.
#[inline]
pub(crate) fn full_fence_after_rmw() {
    #[cfg(loom)]
    imp::fence(Ordering::SeqCst);
}
