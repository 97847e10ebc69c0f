//! Shapes with unknown parts.

use smallvec::SmallVec;
use std::fmt;

/// The length of an axis that is not known.
pub const UNKNOWN: i64 = -1;

/// A shape: of unknown rank, or a length or `UNKNOWN` for each axis. 0 is a length, no axes are a scalar.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Shape(Option<SmallVec<[i64; 4]>>);

impl Shape {
    /// Nothing is known.
    #[must_use]
    pub const fn unknown() -> Self {
        Self(None)
    }

    /// The lengths of the axes; a negative one is unknown.
    pub fn new(lengths: impl IntoIterator<Item = i64>) -> Self {
        Self(Some(lengths.into_iter().map(|each| if each < 0 { UNKNOWN } else { each }).collect()))
    }

    /// So many axes of unknown length.
    #[must_use]
    pub fn of_rank(rank: usize) -> Self {
        Self::new(std::iter::repeat_n(UNKNOWN, rank))
    }

    /// The number of axes.
    #[must_use]
    pub fn rank(&self) -> Option<usize> {
        self.0.as_ref().map(SmallVec::len)
    }

    /// The lengths of the axes; some may be `UNKNOWN`.
    #[must_use]
    pub fn lengths(&self) -> Option<&[i64]> {
        self.0.as_deref()
    }

    /// Whether all is known.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.lengths().is_some_and(|lengths| lengths.iter().all(|&length| length >= 0))
    }

    /// The number of elements, where all is known and it fits.
    #[must_use]
    pub fn elements(&self) -> Option<i64> {
        self.lengths()?
            .iter()
            .try_fold(1_i64, |product, &length| if length < 0 { None } else { product.checked_mul(length) })
    }

    /// Both as one, if they do not contradict each other.
    #[must_use]
    pub fn joined(&self, other: &Self) -> Option<Self> {
        match (self.lengths(), other.lengths()) {
            (None, _) => Some(other.clone()),
            (_, None) => Some(self.clone()),
            (Some(own), Some(others)) if own.len() == others.len() => {
                let mut lengths = SmallVec::with_capacity(own.len());
                for (&a, &b) in own.iter().zip(others) {
                    lengths.push(match (a, b) {
                        (a, b) if a == b => a,
                        (UNKNOWN, known) | (known, UNKNOWN) => known,
                        _ => return None,
                    });
                }
                Some(Self(Some(lengths)))
            }
            _ => None,
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(lengths) = self.lengths() else { return f.write_str("?") };
        f.write_str("(")?;
        for (at, &length) in lengths.iter().enumerate() {
            if at > 0 {
                f.write_str(", ")?;
            }
            if length < 0 { f.write_str("?")? } else { write!(f, "{length}")? }
        }
        f.write_str(if lengths.len() == 1 { ",)" } else { ")" })
    }
}
