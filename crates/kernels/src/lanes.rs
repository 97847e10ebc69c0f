//! Widths of lanes, as types: kernels on data with channels side by side, all of these at a time, as a vector. Each
//! element is computed as it is where data lie in rows, so results are the same, bit for bit.

/// The kernel for lanes of this width, under a name of its own; nothing for widths that no processor has.
macro_rules! of_width {
    ($width:expr, $name:ident => $made:expr) => {
        match $width {
            4 => of_width!(@ 4, $name => $made),
            8 => of_width!(@ 8, $name => $made),
            16 => of_width!(@ 16, $name => $made),
            _ => None,
        }
    };
    (@ $width:literal, $name:ident => $made:expr) => {{
        const $name: usize = $width;
        let made: Arc<dyn Blocked> = Arc::new($made);
        Some(made)
    }};
}

pub(crate) use of_width;
