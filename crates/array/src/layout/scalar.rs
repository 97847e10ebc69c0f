//! Numbers given with an op instead of an array, as elements.

use std::fmt;
use weft_shape::DType;

/// A number given with an op instead of an array.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scalar {
    /// A truth value.
    Bool(bool),
    /// An integer that fits 64 bits with a sign.
    Int(i64),
    /// A larger integer.
    UInt(u64),
    /// A real number.
    Float(f64),
    /// A complex number.
    Complex(f64, f64),
}

impl fmt::Display for Scalar {
    /// The number as Python writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => f.write_str(if *value { "True" } else { "False" }),
            Self::Int(value) => write!(f, "{value}"),
            Self::UInt(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value:?}"),
            Self::Complex(re, im) => write!(f, "({re:?}{im:+?}j)"),
        }
    }
}

/// The bytes of one element, aligned for any type.
#[derive(Debug, Clone, Copy)]
#[repr(align(16))]
pub(crate) struct Element(pub(crate) [u8; 16]);

impl Scalar {
    /// Whether arrays of this type take the number without a change of its kind or a loss of its range.
    #[must_use]
    #[inline]
    pub fn fits(self, dtype: DType) -> bool {
        self.element(dtype).is_some()
    }

    /// The bytes of the scalar as an element of this type, if the type takes it. Bytes behind the element are 0.
    #[must_use]
    pub fn bytes(self, dtype: DType) -> Option<[u8; 16]> {
        self.element(dtype).map(|element| element.0)
    }

    /// The scalar as an element of this type, if the type holds numbers of its kind and the number is in range.
    #[inline]
    pub(crate) fn element(self, dtype: DType) -> Option<Element> {
        let mut bytes = [0; 16];
        macro_rules! put {
            ($value:expr) => {{
                let raw = $value.to_ne_bytes();
                bytes[..raw.len()].copy_from_slice(&raw);
            }};
        }
        macro_rules! integer {
            ($type:ty) => {
                match self {
                    Self::Bool(value) => put!(<$type>::from(value)),
                    Self::Int(value) => put!(<$type>::try_from(value).ok()?),
                    Self::UInt(value) => put!(<$type>::try_from(value).ok()?),
                    Self::Float(_) | Self::Complex(..) => return None,
                }
            };
        }
        #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)] // as in an assignment to an array
        let real = || match self {
            Self::Bool(value) => Some(f64::from(u8::from(value))),
            Self::Int(value) => Some(value as f64),
            Self::UInt(value) => Some(value as f64),
            Self::Float(value) => Some(value),
            Self::Complex(..) => None,
        };
        let parts = || if let Self::Complex(re, im) = self { Some((re, im)) } else { Some((real()?, 0.0)) };
        #[allow(clippy::cast_possible_truncation)] // as above
        match dtype {
            DType::Bool => match self {
                Self::Bool(value) => put!(u8::from(value)),
                _ => return None,
            },
            DType::Int8 => integer!(i8),
            DType::UInt8 => integer!(u8),
            DType::Int16 => integer!(i16),
            DType::UInt16 => integer!(u16),
            DType::Int32 => integer!(i32),
            DType::UInt32 => integer!(u32),
            DType::Int64 => integer!(i64),
            DType::UInt64 => integer!(u64),
            // NumPy warns of an overflow: such a scalar takes the slow way.
            DType::Float16 => {
                let value = real()?;
                let narrow = half::f16::from_f64(value);
                if narrow.is_infinite() && value.is_finite() {
                    return None;
                }
                put!(narrow);
            }
            DType::Float32 => {
                let value = real()?;
                let narrow = value as f32;
                if narrow.is_infinite() && value.is_finite() {
                    return None;
                }
                put!(narrow);
            }
            DType::Float64 => put!(real()?),
            DType::Complex64 => {
                let (re, im) = parts()?;
                bytes[..4].copy_from_slice(&(re as f32).to_ne_bytes());
                bytes[4..8].copy_from_slice(&(im as f32).to_ne_bytes());
            }
            DType::Complex128 => {
                let (re, im) = parts()?;
                bytes[..8].copy_from_slice(&re.to_ne_bytes());
                bytes[8..].copy_from_slice(&im.to_ne_bytes());
            }
        }
        Some(Element(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::{DType, Scalar};

    #[test]
    fn scalars_fit_or_are_refused() {
        assert_eq!(
            Scalar::Int(7).element(DType::Float32).map(|e| e.0[..4].to_vec()),
            Some(7_f32.to_ne_bytes().to_vec())
        );
        assert_eq!(
            Scalar::Int(-7).element(DType::Int16).map(|e| e.0[..2].to_vec()),
            Some((-7_i16).to_ne_bytes().to_vec())
        );
        assert!(Scalar::Int(300).element(DType::UInt8).is_none(), "out of range");
        assert!(Scalar::Int(-1).element(DType::UInt64).is_none(), "negative");
        assert!(Scalar::Float(1.5).element(DType::Int64).is_none(), "of another kind");
        assert!(Scalar::Int(1).element(DType::Bool).is_none(), "of another kind");
        assert!(Scalar::Float(1e300).element(DType::Float32).is_none(), "too large");
        assert!(Scalar::Float(65520.0).element(DType::Float16).is_none(), "rounds to infinity");
        assert_eq!(
            Scalar::Float(-1.5).element(DType::Float16).map(|e| e.0[..2].to_vec()),
            Some(0xbe00_u16.to_ne_bytes().to_vec())
        );
        assert!(Scalar::Complex(0.0, 1.0).element(DType::Float64).is_none(), "of another kind");
    }
}
