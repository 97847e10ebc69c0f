//! Loops that are compiled several times, for the vectors of each kind of processor; which there are is found out at run time.
//!
//! No sum is taken together with its product, and none is reordered: the bits are the same with all of them. The callees of a
//! loop have to be inlined into it, or it is compiled for the smallest vectors alone.
//!
//! | name | processor | vectors |
//! |---|---|---|
//! | `sse2` | every x86-64 | 128 bits |
//! | `avx2` | x86-64-v3: AVX2, FMA | 256 bits |
//! | `avx512` | x86-64-v4: AVX-512 F, BW, CD, DQ, VL | 512 bits |
//! | `neon` | every 64-bit ARM | 128 bits |
//! | `plain` | others | as the compiler finds them |
//!
//! The variable `WEFT_VECTORS` names another one than the widest. The name of vectors that this processor lacks changes nothing.

use pulp::Arch;
use std::sync::OnceLock;

/// One kind of vectors.
#[derive(Clone, Copy)]
struct Kind {
    name: &'static str,
    arch: Arch,
}

/// Those of this processor, the narrowest first.
fn kinds() -> Vec<Kind> {
    #[cfg(target_arch = "x86_64")]
    {
        use pulp::x86::{V3, V4};
        let wider = [
            V3::try_new().map(|simd| Kind { name: "avx2", arch: Arch::V3(simd) }),
            V4::try_new().map(|simd| Kind { name: "avx512", arch: Arch::V4(simd) }),
        ];
        let every = Kind { name: "sse2", arch: Arch::Scalar };
        std::iter::once(every).chain(wider.into_iter().flatten()).collect()
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        // Vectors that every processor of this architecture has: to compile a loop once is enough.
        let name = if cfg!(target_arch = "aarch64") { "neon" } else { "plain" };
        vec![Kind { name, arch: Arch::new() }]
    }
}

/// The kind that `WEFT_VECTORS` names, else the widest.
fn taken() -> Kind {
    static TAKEN: OnceLock<Kind> = OnceLock::new();
    *TAKEN.get_or_init(|| {
        let (kinds, named) = (kinds(), std::env::var("WEFT_VECTORS").ok());
        let found = kinds.iter().find(|kind| named.as_deref() == Some(kind.name));
        *found.or(kinds.last()).expect("every processor has one")
    })
}

/// Calls the version for this processor's vectors.
#[inline]
pub(crate) fn widest<R>(body: impl FnOnce() -> R) -> R {
    taken().arch.dispatch(body)
}

/// Returns the name of the vectors that loops take, and of all that this processor has, the narrowest first.
#[must_use]
pub fn vectors() -> (&'static str, Vec<&'static str>) {
    (taken().name, kinds().iter().map(|kind| kind.name).collect())
}
