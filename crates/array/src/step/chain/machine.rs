//! The machine that runs a chain: a loop over tiles, and in it one over instructions, with two tiles in registers.
//!
//! It is written once and compiled for each kind of vectors and each type of elements. An instruction is one jump and then a
//! tile of independent vectors: these keep the vector units busy, and the jump costs little.

use super::code::Instruction;

/// The tiles of an operand: the start of the operand, and a mask on the offset of a tile. The mask is 0 if all tiles
/// share one place.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct Address {
    pub(super) start: *mut u8,
    pub(super) mask: usize,
}

/// Bytes from splat to splat: those of the largest vectors.
pub(super) const SPLAT: usize = 64;

/// A machine for one type of elements and one kind of vectors.
///
/// # Safety
///
/// The processor has these vectors. The program was made for the type and for this many addresses and splats. Each
/// address reaches `tiles` tiles, or one if its mask is 0.
pub(super) type Run = unsafe fn(program: &[Instruction], addresses: &[Address], splats: *const u8, tiles: usize);

/// Evaluates an expression of two operands for each vector of a register.
macro_rules! each {
    ($count:ident, $to:ident, |$left:ident, $right:ident| $made:expr, |$at:ident| $a:expr, $b:expr) => {
        for $at in 0..$count {
            let ($left, $right) = ($a, $b);
            $to[$at] = $made;
        }
    };
}

/// A machine: its name, the features that it needs, its vectors, vectors of a tile, their loads and stores, and an
/// expression for each op.
macro_rules! machine {
    (
        $name:ident, $(#[$feature:meta])?
        vectors: $vector:ty, of $count:literal, zero $zero:expr, load $load:expr, store $store:expr;
        of two { $($two:ident: |$left:ident, $right:ident| $made:expr;)* }
        of one { $($one:ident: |$x:ident| $found:expr;)* }
    ) => {
        /// # Safety
        ///
        /// As for [`Run`](super::machine::Run).
        $(#[$feature])?
        pub(super) unsafe fn $name(
            program: &[$crate::step::chain::code::Instruction],
            addresses: &[$crate::step::chain::machine::Address],
            splats: *const u8,
            tiles: usize,
        ) {
            use $crate::step::chain::code::{self, STORE_A, STORE_B};
            use $crate::step::chain::machine::SPLAT;
            const COUNT: usize = $count;
            const BYTES: usize = size_of::<$vector>();
            for tile in 0..tiles {
                let offset = tile * COUNT * BYTES;
                let (mut a, mut b) = ([$zero; COUNT], [$zero; COUNT]);
                for instruction in program {
                    // SAFETY: the caller's promise; there is at least one address, that of the number 0.
                    let address = unsafe { *addresses.get_unchecked(usize::from(instruction.address)) };
                    let start = address.start.wrapping_add(offset & address.mask);
                    let splat = splats.wrapping_add(usize::from(instruction.splat) * SPLAT);
                    macro_rules! memory { ($at:expr) => { $load(start.wrapping_add($at * BYTES)) } }
                    macro_rules! splat { () => { $load(splat) } }
                    // SAFETY: the caller's promise: the operands reach these bytes, and the processor has the vectors.
                    unsafe {
                        match instruction.code {
                            $(
                                code::$two::A_AA => each!(COUNT, a, |$left, $right| $made, |at| a[at], a[at]),
                                code::$two::A_AB => each!(COUNT, a, |$left, $right| $made, |at| a[at], b[at]),
                                code::$two::A_BA => each!(COUNT, a, |$left, $right| $made, |at| b[at], a[at]),
                                code::$two::A_BB => each!(COUNT, a, |$left, $right| $made, |at| b[at], b[at]),
                                code::$two::A_AM => each!(COUNT, a, |$left, $right| $made, |at| a[at], memory!(at)),
                                code::$two::A_MA => each!(COUNT, a, |$left, $right| $made, |at| memory!(at), a[at]),
                                code::$two::A_BM => each!(COUNT, a, |$left, $right| $made, |at| b[at], memory!(at)),
                                code::$two::A_MB => each!(COUNT, a, |$left, $right| $made, |at| memory!(at), b[at]),
                                code::$two::A_AS => { let s = splat!(); each!(COUNT, a, |$left, $right| $made, |at| a[at], s) }
                                code::$two::A_SA => { let s = splat!(); each!(COUNT, a, |$left, $right| $made, |at| s, a[at]) }
                                code::$two::A_BS => { let s = splat!(); each!(COUNT, a, |$left, $right| $made, |at| b[at], s) }
                                code::$two::A_SB => { let s = splat!(); each!(COUNT, a, |$left, $right| $made, |at| s, b[at]) }
                                code::$two::B_AA => each!(COUNT, b, |$left, $right| $made, |at| a[at], a[at]),
                                code::$two::B_AB => each!(COUNT, b, |$left, $right| $made, |at| a[at], b[at]),
                                code::$two::B_BA => each!(COUNT, b, |$left, $right| $made, |at| b[at], a[at]),
                                code::$two::B_BB => each!(COUNT, b, |$left, $right| $made, |at| b[at], b[at]),
                                code::$two::B_AM => each!(COUNT, b, |$left, $right| $made, |at| a[at], memory!(at)),
                                code::$two::B_MA => each!(COUNT, b, |$left, $right| $made, |at| memory!(at), a[at]),
                                code::$two::B_BM => each!(COUNT, b, |$left, $right| $made, |at| b[at], memory!(at)),
                                code::$two::B_MB => each!(COUNT, b, |$left, $right| $made, |at| memory!(at), b[at]),
                                code::$two::B_AS => { let s = splat!(); each!(COUNT, b, |$left, $right| $made, |at| a[at], s) }
                                code::$two::B_SA => { let s = splat!(); each!(COUNT, b, |$left, $right| $made, |at| s, a[at]) }
                                code::$two::B_BS => { let s = splat!(); each!(COUNT, b, |$left, $right| $made, |at| b[at], s) }
                                code::$two::B_SB => { let s = splat!(); each!(COUNT, b, |$left, $right| $made, |at| s, b[at]) }
                            )*
                            $(
                                code::$one::A_A => each!(COUNT, a, |$x, _y| $found, |at| a[at], ()),
                                code::$one::A_B => each!(COUNT, a, |$x, _y| $found, |at| b[at], ()),
                                code::$one::A_M => each!(COUNT, a, |$x, _y| $found, |at| memory!(at), ()),
                                code::$one::A_S => { let s = splat!(); each!(COUNT, a, |$x, _y| $found, |at| s, ()) }
                                code::$one::B_A => each!(COUNT, b, |$x, _y| $found, |at| a[at], ()),
                                code::$one::B_B => each!(COUNT, b, |$x, _y| $found, |at| b[at], ()),
                                code::$one::B_M => each!(COUNT, b, |$x, _y| $found, |at| memory!(at), ()),
                                code::$one::B_S => { let s = splat!(); each!(COUNT, b, |$x, _y| $found, |at| s, ()) }
                            )*
                            STORE_A => for at in 0..COUNT { $store(start.wrapping_add(at * BYTES), a[at]); },
                            STORE_B => for at in 0..COUNT { $store(start.wrapping_add(at * BYTES), b[at]); },
                            // SAFETY: programs have no other codes.
                            _ => std::hint::unreachable_unchecked(),
                        }
                    }
                }
            }
        }
    };
}

pub(super) use {each, machine};
