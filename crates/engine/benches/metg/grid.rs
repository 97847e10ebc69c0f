//! The grid of tasks, from a file, and their kernel.

use crate::program::{Op, Program};
use std::ffi::{c_char, c_int};

/// No task reads more.
pub(crate) const COLUMNS: usize = 16;

unsafe extern "C" {
    /// The number that a text of digits tells: one multiplication after the other.
    pub(crate) fn atoi(text: *const c_char) -> c_int;
}

/// Digits that are all 0, as many as the longest task reads.
pub(crate) struct Kernel {
    text: Vec<u8>,
}

impl Kernel {
    pub(crate) fn new(most: usize) -> Self {
        let mut text = vec![b'0'; most];
        text.push(0);
        Self { text }
    }

    /// The last so many digits.
    pub(crate) fn data(&self, digits: usize) -> *const c_char {
        self.text[self.text.len() - 1 - digits..].as_ptr().cast()
    }

    pub(crate) fn run(&self, digits: usize) {
        // SAFETY: the text ends with a 0.
        std::hint::black_box(unsafe { atoi(self.data(digits)) });
    }
}

/// Reads what `weft.bench.metg.patterns.write` wrote.
pub(crate) fn read(path: &str) -> Program<COLUMNS> {
    let text = std::fs::read_to_string(path).expect("the file of the program");
    let mut numbers = text.split_ascii_whitespace().map(|it| it.parse::<i64>().expect("a number"));
    let mut next = || numbers.next().expect("a whole program");
    let (variables, ops) = (next(), next());
    let op = |next: &mut dyn FnMut() -> i64| {
        let mut op = Op::<COLUMNS> { mutates: usize::try_from(next()).ok(), ..Op::default() };
        op.read_count = usize::try_from(next()).expect("a number of reads");
        op.reads[..op.read_count].fill_with(|| usize::try_from(next()).expect("a variable"));
        op
    };
    Program {
        variables: usize::try_from(variables).expect("a number of variables"),
        ops: (0..ops).map(|_| op(&mut next)).collect(),
    }
}
