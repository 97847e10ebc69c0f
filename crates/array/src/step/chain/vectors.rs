//! The choice of machines for this processor.

use super::machine::Run;
use super::plain;
#[cfg(target_arch = "x86_64")]
use super::{floats, integers};
use crate::DType;
use std::sync::LazyLock;

/// Kinds of vectors, the narrowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::step) enum Vectors {
    /// The vectors that the compiler finds for any processor.
    Plain,
    /// 128 bits.
    #[cfg(target_arch = "x86_64")]
    Sse2,
    /// 256 bits.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// 512 bits.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

/// A machine, and the number of elements in its tile.
#[derive(Clone, Copy)]
pub(super) struct Machine {
    pub(super) run: Run,
    pub(super) tile: usize,
}

impl Vectors {
    /// All kinds that this processor has.
    pub(in crate::step) fn all() -> impl Iterator<Item = Self> {
        #[cfg(target_arch = "x86_64")]
        {
            let sse2 = cfg!(not(miri)); // Miri runs no assembly
            let (avx2, avx512) = (is_x86_feature_detected!("avx2"), is_x86_feature_detected!("avx512f"));
            let avx512 = avx512 && is_x86_feature_detected!("avx512dq");
            [(Self::Plain, true), (Self::Sse2, sse2), (Self::Avx2, avx2), (Self::Avx512, avx512)]
                .into_iter()
                .filter_map(|(kind, there)| there.then_some(kind))
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            std::iter::once(Self::Plain)
        }
    }

    /// The kind for chains: the widest, or the one that `WEFT_VECTORS` in the environment names.
    pub(in crate::step) fn chosen() -> Self {
        static CHOSEN: LazyLock<Vectors> = LazyLock::new(|| {
            let name = std::env::var("WEFT_VECTORS").unwrap_or_default();
            let widest = Vectors::all().max().unwrap_or(Vectors::Plain);
            Vectors::all().find(|kind| kind.name() == name).unwrap_or(widest)
        });
        *CHOSEN
    }

    fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            #[cfg(target_arch = "x86_64")]
            Self::Sse2 => "sse2",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => "avx512",
        }
    }

    /// The machine for elements of this type, if there is one. The processor has these vectors.
    pub(super) fn machine(self, dtype: DType) -> Option<Machine> {
        let (run, tile): (Run, usize) = match (self, dtype) {
            (Self::Plain, DType::Float32) => (plain::float32, 48),
            (Self::Plain, DType::Float64) => (plain::float64, 24),
            (Self::Plain, DType::Int32 | DType::UInt32) => (plain::int32, 48),
            (Self::Plain, DType::Int64 | DType::UInt64) => (plain::int64, 24),
            // Without products and orders of integers there is little to gain.
            #[cfg(target_arch = "x86_64")]
            (Self::Sse2, DType::Int32 | DType::UInt32 | DType::Int64 | DType::UInt64) => {
                return Self::Plain.machine(dtype);
            }
            #[cfg(target_arch = "x86_64")]
            (Self::Avx2, DType::Int32 | DType::UInt32) => (integers::int32_of_8, 48),
            #[cfg(target_arch = "x86_64")]
            (Self::Avx2, DType::Int64 | DType::UInt64) => (integers::int64_of_4, 24),
            #[cfg(target_arch = "x86_64")]
            (Self::Avx512, DType::Int32 | DType::UInt32) => (integers::int32_of_16, 192),
            #[cfg(target_arch = "x86_64")]
            (Self::Avx512, DType::Int64 | DType::UInt64) => (integers::int64_of_8, 96),
            #[cfg(target_arch = "x86_64")]
            (Self::Sse2, DType::Float32) => (floats::float32_of_4, 24),
            #[cfg(target_arch = "x86_64")]
            (Self::Sse2, DType::Float64) => (floats::float64_of_2, 12),
            #[cfg(target_arch = "x86_64")]
            (Self::Avx2, DType::Float32) => (floats::float32_of_8, 48),
            #[cfg(target_arch = "x86_64")]
            (Self::Avx2, DType::Float64) => (floats::float64_of_4, 24),
            #[cfg(target_arch = "x86_64")]
            (Self::Avx512, DType::Float32) => (floats::float32_of_16, 192),
            #[cfg(target_arch = "x86_64")]
            (Self::Avx512, DType::Float64) => (floats::float64_of_8, 96),
            _ => return None,
        };
        Some(Machine { run, tile })
    }
}
