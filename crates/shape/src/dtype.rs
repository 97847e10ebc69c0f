//! Element types: those of the Python array API standard, and half precision.

use std::fmt;

/// An element type. By kind, then by size: real floating types and complex ones come last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[allow(missing_docs)] // each says what it is
pub enum DType {
    Bool,
    Int8,
    UInt8,
    Int16,
    UInt16,
    Int32,
    UInt32,
    Int64,
    UInt64,
    Float16,
    Float32,
    Float64,
    Complex64,
    Complex128,
}

impl DType {
    /// How many there are.
    pub const COUNT: usize = 14;

    /// All types, by number.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Bool,
        Self::Int8,
        Self::UInt8,
        Self::Int16,
        Self::UInt16,
        Self::Int32,
        Self::UInt32,
        Self::Int64,
        Self::UInt64,
        Self::Float16,
        Self::Float32,
        Self::Float64,
        Self::Complex64,
        Self::Complex128,
    ];

    /// Bytes of an element.
    #[must_use]
    #[inline]
    pub const fn size(self) -> usize {
        match self {
            Self::Bool | Self::Int8 | Self::UInt8 => 1,
            Self::Int16 | Self::UInt16 | Self::Float16 => 2,
            Self::Int32 | Self::UInt32 | Self::Float32 => 4,
            Self::Int64 | Self::UInt64 | Self::Float64 | Self::Complex64 => 8,
            Self::Complex128 => 16,
        }
    }

    /// Whether it is a floating-point type, real or complex.
    #[must_use]
    #[inline]
    pub const fn is_floating(self) -> bool {
        self as u8 >= Self::Float16 as u8
    }

    /// NumPy's name of it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Int8 => "int8",
            Self::UInt8 => "uint8",
            Self::Int16 => "int16",
            Self::UInt16 => "uint16",
            Self::Int32 => "int32",
            Self::UInt32 => "uint32",
            Self::Int64 => "int64",
            Self::UInt64 => "uint64",
            Self::Float16 => "float16",
            Self::Float32 => "float32",
            Self::Float64 => "float64",
            Self::Complex64 => "complex64",
            Self::Complex128 => "complex128",
        }
    }

    /// The type of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|each| each.name() == name)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::DType;

    #[test]
    fn types_are_listed_in_the_order_of_their_numbers_and_found_by_name() {
        assert!(DType::ALL.iter().enumerate().all(|(number, dtype)| *dtype as usize == number));
        assert!(DType::ALL.iter().all(|dtype| DType::named(dtype.name()) == Some(*dtype)));
        assert_eq!(DType::named("int"), None);
    }
}
