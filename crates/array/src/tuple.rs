//! Numbers in messages.

use std::fmt;

/// Numbers as Python writes a tuple of them: messages are read there.
#[derive(Debug, Clone, Copy)]
pub struct Tuple<'a, T>(pub &'a [T]);

impl<T: fmt::Display> fmt::Display for Tuple<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        for (at, number) in self.0.iter().enumerate() {
            write!(f, "{}{number}", if at > 0 { ", " } else { "" })?;
        }
        f.write_str(if self.0.len() == 1 { ",)" } else { ")" })
    }
}

#[cfg(test)]
mod tests {
    use super::Tuple;

    #[test]
    fn tuples_are_written_as_python_does() {
        let written = |numbers: &[usize]| Tuple(numbers).to_string();
        assert_eq!([written(&[]), written(&[2]), written(&[2, 3])], ["()", "(2,)", "(2, 3)"]);
    }
}
