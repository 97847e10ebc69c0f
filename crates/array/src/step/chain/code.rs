//! Instructions of the machines that run chains: two registers, each of a tile of elements, and operands in memory.
//!
//! The code of an instruction says its op, the register of the result and the places of the operands.

use crate::DType;

macro_rules! ops {
    ($($name:ident),*) => {
        /// The function of an instruction.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u16)]
        pub(super) enum Op {
            $($name),*
        }

        #[cfg(target_arch = "x86_64")]
        impl Op {
            /// All of them, in the order of their numbers.
            pub(super) const ALL: [Self; [$(Self::$name),*].len()] = [$(Self::$name),*];
        }
    };
}

ops!(Add, Subtract, Multiply, Divide, Minimum, Maximum, And, Or, Xor, Copy, Negative, Absolute, Sqrt, Not);

impl Op {
    /// Whether the machines for this type have it.
    pub(super) fn is_for(self, dtype: DType) -> bool {
        match self {
            Self::Divide | Self::Sqrt => dtype.is_floating(),
            Self::And | Self::Or | Self::Xor | Self::Not => !dtype.is_floating(),
            _ => true,
        }
    }
}

/// The place of an instruction's operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub(super) enum Place {
    /// In the first register.
    A,
    /// In the second register.
    B,
    /// A tile in memory.
    Memory,
    /// One vector in memory, in place of a whole tile.
    Splat,
}

/// One instruction.
#[derive(Debug, Clone, Copy)]
pub(super) struct Instruction {
    pub(super) code: u16,
    /// The address of the operand in memory, by number; the first if there is none.
    pub(super) address: u16,
    /// The splat, by number; the first if there is none.
    pub(super) splat: u16,
}

/// What an instruction does.
#[cfg(target_arch = "x86_64")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// It stores a register.
    Store(Place),
    /// It computes; an op on one operand has it on both sides.
    Op { op: Op, to: Place, left: Place, right: Place },
}

#[cfg(target_arch = "x86_64")]
impl Instruction {
    /// The inverse of [`code`].
    pub(super) fn meaning(self) -> Meaning {
        const PLACES: [Place; 4] = [Place::A, Place::B, Place::Memory, Place::Splat];
        match self.code {
            STORE_A => Meaning::Store(Place::A),
            STORE_B => Meaning::Store(Place::B),
            code => {
                let place = |from: u16| PLACES[usize::from(from % 4)];
                let to = if code / 16 % 2 == 0 { Place::A } else { Place::B };
                Meaning::Op { op: Op::ALL[usize::from(code / 32)], to, left: place(code / 4), right: place(code) }
            }
        }
    }
}

/// The code of an op on two operands; an op on one operand is given it twice.
pub(super) const fn code(op: Op, to: Place, left: Place, right: Place) -> u16 {
    (((op as u16) * 2 + (to as u16)) * 4 + (left as u16)) * 4 + (right as u16)
}

/// Stores the first register.
pub(super) const STORE_A: u16 = (Op::Not as u16 + 1) * 32;
/// Stores the second register.
pub(super) const STORE_B: u16 = STORE_A + 1;

/// The codes of ops by name, for patterns: the register of the result, then the places of the operands.
macro_rules! codes {
    ($($name:ident: $op:ident),*) => {$(
        pub(super) mod $name {
            use super::{Op, Place::{A, B, Memory, Splat}, code};
            pub(in crate::step::chain) const A_AA: u16 = code(Op::$op, A, A, A);
            pub(in crate::step::chain) const A_AB: u16 = code(Op::$op, A, A, B);
            pub(in crate::step::chain) const A_BA: u16 = code(Op::$op, A, B, A);
            pub(in crate::step::chain) const A_BB: u16 = code(Op::$op, A, B, B);
            pub(in crate::step::chain) const A_AM: u16 = code(Op::$op, A, A, Memory);
            pub(in crate::step::chain) const A_MA: u16 = code(Op::$op, A, Memory, A);
            pub(in crate::step::chain) const A_BM: u16 = code(Op::$op, A, B, Memory);
            pub(in crate::step::chain) const A_MB: u16 = code(Op::$op, A, Memory, B);
            pub(in crate::step::chain) const A_AS: u16 = code(Op::$op, A, A, Splat);
            pub(in crate::step::chain) const A_SA: u16 = code(Op::$op, A, Splat, A);
            pub(in crate::step::chain) const A_BS: u16 = code(Op::$op, A, B, Splat);
            pub(in crate::step::chain) const A_SB: u16 = code(Op::$op, A, Splat, B);
            pub(in crate::step::chain) const B_AA: u16 = code(Op::$op, B, A, A);
            pub(in crate::step::chain) const B_AB: u16 = code(Op::$op, B, A, B);
            pub(in crate::step::chain) const B_BA: u16 = code(Op::$op, B, B, A);
            pub(in crate::step::chain) const B_BB: u16 = code(Op::$op, B, B, B);
            pub(in crate::step::chain) const B_AM: u16 = code(Op::$op, B, A, Memory);
            pub(in crate::step::chain) const B_MA: u16 = code(Op::$op, B, Memory, A);
            pub(in crate::step::chain) const B_BM: u16 = code(Op::$op, B, B, Memory);
            pub(in crate::step::chain) const B_MB: u16 = code(Op::$op, B, Memory, B);
            pub(in crate::step::chain) const B_AS: u16 = code(Op::$op, B, A, Splat);
            pub(in crate::step::chain) const B_SA: u16 = code(Op::$op, B, Splat, A);
            pub(in crate::step::chain) const B_BS: u16 = code(Op::$op, B, B, Splat);
            pub(in crate::step::chain) const B_SB: u16 = code(Op::$op, B, Splat, B);
        }
    )*};
}

/// The same of ops on one operand.
macro_rules! codes_of_one {
    ($($name:ident: $op:ident),*) => {$(
        pub(super) mod $name {
            use super::{Op, Place::{A, B, Memory, Splat}, code};
            pub(in crate::step::chain) const A_A: u16 = code(Op::$op, A, A, A);
            pub(in crate::step::chain) const A_B: u16 = code(Op::$op, A, B, B);
            pub(in crate::step::chain) const A_M: u16 = code(Op::$op, A, Memory, Memory);
            pub(in crate::step::chain) const A_S: u16 = code(Op::$op, A, Splat, Splat);
            pub(in crate::step::chain) const B_A: u16 = code(Op::$op, B, A, A);
            pub(in crate::step::chain) const B_B: u16 = code(Op::$op, B, B, B);
            pub(in crate::step::chain) const B_M: u16 = code(Op::$op, B, Memory, Memory);
            pub(in crate::step::chain) const B_S: u16 = code(Op::$op, B, Splat, Splat);
        }
    )*};
}

codes!(add: Add, subtract: Subtract, multiply: Multiply, divide: Divide, minimum: Minimum, maximum: Maximum);
codes!(and: And, or: Or, xor: Xor);
codes_of_one!(copy: Copy, negative: Negative, absolute: Absolute, sqrt: Sqrt, not: Not);
