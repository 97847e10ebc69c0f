//! Machines for any processor: arrays of numbers, which the compiler turns into vectors.

use super::machine::{each, machine};

/// # Safety
///
/// There are this many numbers.
#[inline]
unsafe fn load<T: Copy, const COUNT: usize>(from: *const u8) -> [T; COUNT] {
    // SAFETY: the caller's promise.
    unsafe { from.cast::<[T; COUNT]>().read_unaligned() }
}

/// # Safety
///
/// There is room for this many numbers.
#[inline]
unsafe fn store<T: Copy, const COUNT: usize>(to: *mut u8, x: [T; COUNT]) {
    // SAFETY: the caller's promise.
    unsafe { to.cast::<[T; COUNT]>().write_unaligned(x) }
}

/// The lesser of two numbers by NumPy's rule: the first if it is NaN or less, else the second.
macro_rules! minimum {
    ($x:expr, $y:expr) => {
        if $x.is_nan() || $x < $y { $x } else { $y }
    };
}

/// The greater of two, as above.
macro_rules! maximum {
    ($x:expr, $y:expr) => {
        if $x.is_nan() || $x > $y { $x } else { $y }
    };
}

/// An expression for each of four numbers, or of two. Written out, it becomes vectors; the compiler may leave a loop as
/// it is.
macro_rules! each_of_4 {
    (|$at:ident| $made:expr) => {
        [
            {
                const $at: usize = 0;
                $made
            },
            {
                const $at: usize = 1;
                $made
            },
            {
                const $at: usize = 2;
                $made
            },
            {
                const $at: usize = 3;
                $made
            },
        ]
    };
}

macro_rules! each_of_2 {
    (|$at:ident| $made:expr) => {
        [
            {
                const $at: usize = 0;
                $made
            },
            {
                const $at: usize = 1;
                $made
            },
        ]
    };
}

machine! {
    float32,
    vectors: [f32; 4], of 12, zero [0.0; 4], load load::<f32, 4>, store store::<f32, 4>;
    of two {
        add: |x, y| each_of_4!(|AT| x[AT] + y[AT]);
        subtract: |x, y| each_of_4!(|AT| x[AT] - y[AT]);
        multiply: |x, y| each_of_4!(|AT| x[AT] * y[AT]);
        divide: |x, y| each_of_4!(|AT| x[AT] / y[AT]);
        minimum: |x, y| each_of_4!(|AT| minimum!(x[AT], y[AT]));
        maximum: |x, y| each_of_4!(|AT| maximum!(x[AT], y[AT]));
    }
    of one {
        copy: |x| x;
        negative: |x| each_of_4!(|AT| -x[AT]);
        absolute: |x| each_of_4!(|AT| x[AT].abs());
        sqrt: |x| each_of_4!(|AT| x[AT].sqrt());
    }
}

machine! {
    float64,
    vectors: [f64; 2], of 12, zero [0.0; 2], load load::<f64, 2>, store store::<f64, 2>;
    of two {
        add: |x, y| each_of_2!(|AT| x[AT] + y[AT]);
        subtract: |x, y| each_of_2!(|AT| x[AT] - y[AT]);
        multiply: |x, y| each_of_2!(|AT| x[AT] * y[AT]);
        divide: |x, y| each_of_2!(|AT| x[AT] / y[AT]);
        minimum: |x, y| each_of_2!(|AT| minimum!(x[AT], y[AT]));
        maximum: |x, y| each_of_2!(|AT| maximum!(x[AT], y[AT]));
    }
    of one {
        copy: |x| x;
        negative: |x| each_of_2!(|AT| -x[AT]);
        absolute: |x| each_of_2!(|AT| x[AT].abs());
        sqrt: |x| each_of_2!(|AT| x[AT].sqrt());
    }
}

machine! {
    int32,
    vectors: [i32; 4], of 12, zero [0_i32; 4], load load::<i32, 4>, store store::<i32, 4>;
    of two {
        add: |x, y| each_of_4!(|AT| x[AT].wrapping_add(y[AT]));
        subtract: |x, y| each_of_4!(|AT| x[AT].wrapping_sub(y[AT]));
        multiply: |x, y| each_of_4!(|AT| x[AT].wrapping_mul(y[AT]));
        minimum: |x, y| each_of_4!(|AT| if x[AT] < y[AT] { x[AT] } else { y[AT] });
        maximum: |x, y| each_of_4!(|AT| if x[AT] > y[AT] { x[AT] } else { y[AT] });
        and: |x, y| each_of_4!(|AT| x[AT] & y[AT]);
        or: |x, y| each_of_4!(|AT| x[AT] | y[AT]);
        xor: |x, y| each_of_4!(|AT| x[AT] ^ y[AT]);
    }
    of one {
        copy: |x| x;
        negative: |x| each_of_4!(|AT| x[AT].wrapping_neg());
        absolute: |x| each_of_4!(|AT| x[AT].wrapping_abs());
        not: |x| each_of_4!(|AT| !x[AT]);
    }
}

machine! {
    int64,
    vectors: [i64; 2], of 12, zero [0_i64; 2], load load::<i64, 2>, store store::<i64, 2>;
    of two {
        add: |x, y| each_of_2!(|AT| x[AT].wrapping_add(y[AT]));
        subtract: |x, y| each_of_2!(|AT| x[AT].wrapping_sub(y[AT]));
        multiply: |x, y| each_of_2!(|AT| x[AT].wrapping_mul(y[AT]));
        minimum: |x, y| each_of_2!(|AT| if x[AT] < y[AT] { x[AT] } else { y[AT] });
        maximum: |x, y| each_of_2!(|AT| if x[AT] > y[AT] { x[AT] } else { y[AT] });
        and: |x, y| each_of_2!(|AT| x[AT] & y[AT]);
        or: |x, y| each_of_2!(|AT| x[AT] | y[AT]);
        xor: |x, y| each_of_2!(|AT| x[AT] ^ y[AT]);
    }
    of one {
        copy: |x| x;
        negative: |x| each_of_2!(|AT| x[AT].wrapping_neg());
        absolute: |x| each_of_2!(|AT| x[AT].wrapping_abs());
        not: |x| each_of_2!(|AT| !x[AT]);
    }
}
