//! Layouts: the order of an array's axes, and their blocks.

use super::Shape;

/// An axis of a layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayoutAxis {
    /// Its capital.
    pub name: char,
    /// Of the inside of blocks, how long they are.
    pub block: Option<i64>,
}

/// The axes of a layout: a capital for each, and a number and a small letter for the inside of its blocks.
///
/// # Errors
///
/// The text's fault, if it is no layout.
pub fn layout_axes(text: &str) -> Result<Vec<LayoutAxis>, String> {
    let mut axes: Vec<LayoutAxis> = Vec::with_capacity(text.len());
    let mut digits = String::new();
    for letter in text.chars() {
        let found = match letter {
            '0'..='9' => {
                digits.push(letter);
                continue;
            }
            'A'..='Z' if digits.is_empty() => LayoutAxis { name: letter, block: None },
            'a'..='z' => {
                let block = digits.parse().ok().filter(|&block: &i64| block > 0);
                let Some(block) = block else {
                    return Err(no_layout(text, &format!("before '{letter}' no length of its blocks is said")));
                };
                digits.clear();
                LayoutAxis { name: letter.to_ascii_uppercase(), block: Some(block) }
            }
            other => return Err(no_layout(text, &format!("'{other}' is no axis"))),
        };
        if axes.iter().any(|known| known.name == found.name && known.block.is_some() == found.block.is_some()) {
            return Err(no_layout(text, &format!("'{letter}' is said twice")));
        }
        axes.push(found);
    }
    if !digits.is_empty() {
        return Err(no_layout(text, &format!("behind {digits} there is no axis")));
    }
    if let Some(inner) = axes.iter().find(|axis| axis.block.is_some() && !is_outer(&axes, axis.name)) {
        return Err(no_layout(text, &format!("there are blocks along '{}' and no such axis", inner.name)));
    }
    if axes.is_empty() { Err(no_layout(text, "it has no axes")) } else { Ok(axes) }
}

fn is_outer(axes: &[LayoutAxis], name: char) -> bool {
    axes.iter().any(|axis| axis.name == name && axis.block.is_none())
}

fn no_layout(text: &str, why: &str) -> String {
    format!(
        "'{text}' is no layout: {why}; a capital stands for an axis, as in 'NCHW', and a number and a small letter for the \
         inside of its blocks, as in 'NCHW16c'"
    )
}

/// Whether an array that lies so may have this shape: that of all axes, or that of axes with their blocks taken
/// together.
#[must_use]
pub fn layout_fits(axes: &[LayoutAxis], shape: &Shape) -> bool {
    let Some(lengths) = shape.lengths() else { return true };
    let is_whole =
        axes.iter().zip(lengths).all(|(axis, &length)| axis.block.is_none_or(|block| length < 0 || block == length));
    (lengths.len() == axes.len() && is_whole)
        || lengths.len() == axes.iter().filter(|axis| axis.block.is_none()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_a_layout() {
        let axes = layout_axes("NCHW16c").unwrap_or_default();
        assert_eq!(axes.iter().map(|axis| axis.block).collect::<Vec<_>>(), [None, None, None, None, Some(16)]);
        for wrong in
            ["", "NCCW", "NCHW4c4c", "nchw", "NC?W", "NHW4c", "NCHW0c", "NCHW4", "4NCHW", "NCHW99999999999999999999c"]
        {
            assert!(layout_axes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn shapes_that_lie_so() {
        let fits = |layout: &str, lengths: &[i64]| {
            layout_axes(layout).is_ok_and(|axes| layout_fits(&axes, &Shape::new(lengths.iter().copied())))
        };
        assert!(fits("NCHW", &[1, 2, 3, 4]) && fits("NCHW4c", &[1, 8, 3, 3]) && fits("NCHW4c", &[1, 2, 3, 3, 4]));
        assert!(!fits("NCHW", &[1, 2]) && !fits("NCHW4c", &[1, 2, 3, 3, 8]));
    }
}
