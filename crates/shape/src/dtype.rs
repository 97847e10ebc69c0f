//! Types of elements.

use std::fmt;

/// The type of an array's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum DType {
    /// A truth value in one byte.
    Bool,
    /// 8 bits, signed.
    Int8,
    /// 16 bits, signed.
    Int16,
    /// 32 bits, signed.
    Int32,
    /// 64 bits, signed.
    Int64,
    /// 8 bits.
    UInt8,
    /// 16 bits.
    UInt16,
    /// 32 bits.
    UInt32,
    /// 64 bits.
    UInt64,
    /// Half precision: in files alone.
    Float16,
    /// Single precision.
    Float32,
    /// Double precision.
    Float64,
    /// Two of single precision.
    Complex64,
    /// Two of double precision.
    Complex128,
}

impl DType {
    /// All of them, in order.
    pub const ALL: [Self; 14] = [
        Self::Bool,
        Self::Int8,
        Self::Int16,
        Self::Int32,
        Self::Int64,
        Self::UInt8,
        Self::UInt16,
        Self::UInt32,
        Self::UInt64,
        Self::Float16,
        Self::Float32,
        Self::Float64,
        Self::Complex64,
        Self::Complex128,
    ];

    /// `NumPy`'s name of it.
    #[must_use]
    pub fn name(self) -> &'static str {
        const NAMES: [&str; 14] = [
            "bool",
            "int8",
            "int16",
            "int32",
            "int64",
            "uint8",
            "uint16",
            "uint32",
            "uint64",
            "float16",
            "float32",
            "float64",
            "complex64",
            "complex128",
        ];
        NAMES[self as usize]
    }

    /// Bytes of an element.
    #[must_use]
    pub fn size(self) -> usize {
        const SIZES: [usize; 14] = [1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8, 8, 16];
        SIZES[self as usize]
    }

    /// The type of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|each| each.name() == name)
    }

    /// The type that `MXNet`'s files write as this number.
    #[must_use]
    pub fn numbered(number: i64) -> Option<Self> {
        const NUMBERS: [DType; 8] = [
            DType::Float32,
            DType::Float64,
            DType::Float16,
            DType::UInt8,
            DType::Int32,
            DType::Int8,
            DType::Int64,
            DType::Bool,
        ];
        usize::try_from(number).ok().and_then(|number| NUMBERS.get(number).copied())
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
