//! Chains as code of the processor's own: the program of a machine, instruction by instruction, without a jump between them.
//!
//! | register | holds |
//! |---|---|
//! | `rdi`, `rsi`, `rdx` | the addresses, the splats, the number of tiles left |
//! | `rcx` | the offset of the tile |
//! | `rax`, `r8` to `r11` | addresses of the tile's operands, as far as they were used last |
//! | vectors | the machine's two registers, each of `count` vectors; behind them, if there is room, four for one moment |
//!
//! Each op is the instruction that the machine uses, with its operands in that order: so bits are the machine's, those of NaNs
//! among them.

use super::code::{Instruction, Meaning, Op, Place};
use super::encode::{Code, Form, Operand, Width};
use super::executable::Executable;
use super::machine::{Address, SPLAT};
use super::vectors::Vectors;
use super::{Home, ROUND};
use crate::DType;
use std::mem::offset_of;

const ADDRESSES: u8 = 7;
const SPLATS: u8 = 6;
const OFFSET: u8 = 1;
const GENERAL: [u8; 5] = [0, 8, 9, 10, 11];

#[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)] // a vector
const SPLAT_STEP: i32 = SPLAT as i32;

const LOAD: Form = Form { table: 1, prefix: 0, opcode: 0x10, wide: false };
const STORE: Form = Form { table: 1, prefix: 0, opcode: 0x11, wide: false };

/// The code of a chain.
#[derive(Debug)]
pub(super) struct Native {
    code: Executable,
    /// The number of elements in its tile.
    tile: usize,
}

/// The instructions of an op.
#[derive(Debug, Clone, Copy)]
enum Recipe {
    /// A load, or a move.
    Copy,
    One(Form),
    Two(Form),
    /// One with a constant for its second operand.
    With(Form, u64),
    /// One on zero and the operand.
    OfZero(Form),
    /// The smaller or the larger of two floating-point numbers; the first one where that is NaN.
    Ordered(Form),
}

impl Native {
    /// The code of a program for elements of a type. None if this processor or system, or an op of it, has none.
    pub(super) fn new(program: &[Instruction], homes: &[Home], dtype: DType, vectors: Vectors) -> Option<Self> {
        let width = match vectors {
            Vectors::Avx512 => Width::Bits512,
            Vectors::Avx2 => Width::Bits256,
            Vectors::Sse2 | Vectors::Plain => return None,
        };
        if !Executable::MAY_BE {
            return None;
        }
        let writer = Writer::new(program, dtype, width)?;
        let tile = usize::from(writer.count) * usize::from(width.bytes()) / dtype.size();
        assert!(ROUND.is_multiple_of(tile), "tiles fill rounds");
        let code = writer.write(program, homes)?;
        Some(Self { code: Executable::new(&code)?, tile })
    }

    pub(super) fn tile(&self) -> usize {
        self.tile
    }

    /// Runs it on so many tiles, at least one.
    ///
    /// # Safety
    ///
    /// As for [`Run`](super::machine::Run); the masks are 0 for those of the homes that are kept.
    pub(super) unsafe fn run(&self, addresses: &[Address], splats: *const u8, tiles: usize) {
        type Run = unsafe extern "sysv64" fn(addresses: *const Address, splats: *const u8, tiles: usize);
        debug_assert!(tiles > 0, "the loop's condition is at its end");
        // SAFETY: the code is a function of this type.
        let run: Run = unsafe { std::mem::transmute(self.code.start().as_ptr()) };
        // SAFETY: the caller's promise.
        unsafe { run(addresses.as_ptr(), splats, tiles) };
    }
}

struct Writer {
    code: Code,
    width: Width,
    dtype: DType,
    /// Vectors of a tile.
    count: u8,
    /// Addresses in general registers, and the register to be used next.
    known: [Option<u16>; GENERAL.len()],
    next: usize,
}

impl Writer {
    fn new(program: &[Instruction], dtype: DType, width: Width) -> Option<Self> {
        let mut moments = width == Width::Bits512;
        for instruction in program {
            if let Meaning::Op { op, left, .. } = instruction.meaning() {
                moments |= match recipe(op, dtype, width)? {
                    Recipe::Two(_) => matches!(left, Place::Memory | Place::Splat),
                    Recipe::OfZero(_) | Recipe::Ordered(_) => true,
                    Recipe::Copy | Recipe::One(_) | Recipe::With(..) => false,
                };
            }
        }
        let count = match (width, moments) {
            (Width::Bits512, _) => 12,
            (Width::Bits256, false) => 8,
            (Width::Bits256, true) => 6,
        };
        Some(Self { code: Code::new(width), width, dtype, count, known: [None; GENERAL.len()], next: 0 })
    }

    fn write(mut self, program: &[Instruction], homes: &[Home]) -> Option<Vec<u8>> {
        self.code.raw(&[0x31, 0xc9]); // xor ecx, ecx
        let start = self.code.here();
        for instruction in program {
            match instruction.meaning() {
                Meaning::Store(from) => {
                    let base = self.address(instruction.address, homes)?;
                    for at in 0..self.count {
                        let vector = self.vector(from, at);
                        self.code.vector(STORE, vector, 0, Operand::Memory(base, self.distance(at)));
                    }
                }
                Meaning::Op { op, to, left, right } => {
                    let in_memory = left == Place::Memory || right == Place::Memory;
                    let base = if in_memory { self.address(instruction.address, homes)? } else { 0 };
                    self.op(recipe(op, self.dtype, self.width)?, to, (left, right), (base, instruction.splat));
                }
            }
        }
        let bytes = i32::from(self.count) * i32::from(self.width.bytes());
        self.code.raw(&[0x48, 0x81, 0xc1]); // add rcx, the bytes of a tile
        self.code.raw(&bytes.to_le_bytes());
        self.code.raw(&[0x48, 0xff, 0xca]); // dec rdx
        self.code.raw(&[0x0f, 0x85]); // jnz to the start
        let back = i32::try_from(self.code.here() + 4 - start).ok()?;
        self.code.raw(&(-back).to_le_bytes());
        self.code.raw(&[0xc5, 0xf8, 0x77, 0xc3]); // vzeroupper; ret
        self.code.finish()
    }

    /// One of four registers for one moment: a left operand that was in memory, what `ordered` finds, a splat, a mask.
    fn moment(&self, number: u8) -> u8 {
        2 * self.count + number
    }

    /// A vector of one of the machine's registers.
    fn vector(&self, register: Place, at: u8) -> u8 {
        if register == Place::B { self.count + at } else { at }
    }

    fn distance(&self, at: u8) -> i32 {
        i32::from(at) * i32::from(self.width.bytes())
    }

    /// The general register with the address of this number.
    fn address(&mut self, number: u16, homes: &[Home]) -> Option<u8> {
        if let Some(at) = self.known.iter().position(|known| *known == Some(number)) {
            return Some(GENERAL[at]);
        }
        let at = self.next;
        self.next = (at + 1) % GENERAL.len();
        let from = usize::from(number) * size_of::<Address>() + offset_of!(Address, start);
        self.code.load_general(GENERAL[at], ADDRESSES, i32::try_from(from).ok()?);
        if !homes[usize::from(number)].is_kept {
            self.code.add_general(GENERAL[at], OFFSET);
        }
        self.known[at] = Some(number);
        Some(GENERAL[at])
    }

    fn op(&mut self, recipe: Recipe, to: Place, (left, right): (Place, Place), (base, splat): (u8, u16)) {
        let constant = if let Recipe::With(_, pattern) = recipe { self.code.constant(pattern) } else { 0 };
        let splat = Operand::Memory(SPLATS, i32::from(splat) * SPLAT_STEP);
        if matches!(recipe, Recipe::OfZero(_)) {
            let zero = self.moment(0);
            self.code.vector(EXCLUSIVE_OR, zero, zero, Operand::Vector(zero));
        }
        // A splat is loaded once if there is a register for it.
        let is_loaded = self.moment(3) < self.width.registers() && (left == Place::Splat || right == Place::Splat);
        if is_loaded {
            self.code.vector(LOAD, self.moment(2), 0, splat);
        }
        for at in 0..self.count {
            let target = self.vector(to, at);
            let operand = |place| match place {
                Place::A | Place::B => Operand::Vector(self.vector(place, at)),
                Place::Memory => Operand::Memory(base, self.distance(at)),
                Place::Splat if is_loaded => Operand::Vector(self.moment(2)),
                Place::Splat => splat,
            };
            let (left, right) = (operand(left), operand(right));
            match recipe {
                Recipe::Copy => self.code.vector(LOAD, target, 0, left),
                Recipe::One(form) => self.code.vector(form, target, 0, left),
                Recipe::Two(form) => {
                    let left = self.in_register(left);
                    self.code.vector(form, target, left, right);
                }
                Recipe::With(form, _) => {
                    let left = if let Operand::Vector(vector) = left {
                        vector
                    } else {
                        self.code.vector(LOAD, target, 0, left);
                        target
                    };
                    self.code.vector(form, target, left, Operand::Constant(constant));
                }
                Recipe::OfZero(form) => self.code.vector(form, target, self.moment(0), left),
                Recipe::Ordered(form) => {
                    let left = self.in_register(left);
                    self.ordered(form, target, left, right);
                }
            }
        }
    }

    /// The register of an operand, or the one for this moment into which it is loaded.
    fn in_register(&mut self, operand: Operand) -> u8 {
        if let Operand::Vector(vector) = operand {
            return vector;
        }
        let moment = self.moment(0);
        self.code.vector(LOAD, moment, 0, operand);
        moment
    }

    fn ordered(&mut self, form: Form, to: u8, left: u8, right: Operand) {
        const UNORDERED: u8 = 3;
        let (found, same) = (self.moment(1), Operand::Vector(left));
        let wide = self.dtype == DType::Float64;
        let compare = Form { opcode: 0xc2, ..form };
        self.code.vector(form, found, left, right);
        match self.width {
            Width::Bits512 => {
                let mask = 1;
                self.code.vector_of_three(compare, (mask, 0), left, same, Some(UNORDERED));
                let blend = Form { table: 2, prefix: 1, opcode: 0x65, wide };
                self.code.vector_of_three(blend, (to, mask), found, same, None);
            }
            Width::Bits256 => {
                let mask = self.moment(3);
                self.code.vector_of_three(compare, (mask, 0), left, same, Some(UNORDERED));
                let blend = Form { table: 3, prefix: 1, opcode: 0x4a + u8::from(wide), wide: false };
                self.code.vector_of_three(blend, (to, 0), found, same, Some(mask << 4));
            }
        }
    }
}

/// Of integers; any of them, as for these bits do not matter.
const EXCLUSIVE_OR: Form = Form { table: 1, prefix: 1, opcode: 0xef, wide: false };
const AND: Form = Form { opcode: 0xdb, ..EXCLUSIVE_OR };
const OR: Form = Form { opcode: 0xeb, ..EXCLUSIVE_OR };

fn recipe(op: Op, dtype: DType, width: Width) -> Option<Recipe> {
    match dtype {
        DType::Float32 | DType::Float64 => of_floats(op, dtype == DType::Float64),
        DType::Int32 | DType::UInt32 => of_integers(op, false),
        // AVX2 has few ops on integers of 64 bits.
        DType::Int64 | DType::UInt64 if width == Width::Bits512 => of_integers(op, true),
        _ => None,
    }
}

fn of_floats(op: Op, wide: bool) -> Option<Recipe> {
    let form = |opcode| Form { table: 1, prefix: u8::from(wide), opcode, wide };
    let sign = if wide { 1 << 63 } else { 0x8000_0000_8000_0000 };
    Some(match op {
        Op::Add => Recipe::Two(form(0x58)),
        Op::Multiply => Recipe::Two(form(0x59)),
        Op::Subtract => Recipe::Two(form(0x5c)),
        Op::Divide => Recipe::Two(form(0x5e)),
        Op::Minimum => Recipe::Ordered(form(0x5d)),
        Op::Maximum => Recipe::Ordered(form(0x5f)),
        Op::Sqrt => Recipe::One(form(0x51)),
        Op::Copy => Recipe::Copy,
        Op::Negative => Recipe::With(EXCLUSIVE_OR, sign),
        Op::Absolute => Recipe::With(AND, !sign),
        Op::And | Op::Or | Op::Xor | Op::Not => return None,
    })
}

fn of_integers(op: Op, wide: bool) -> Option<Recipe> {
    let form = |table, narrow, opcode| Form { table, prefix: 1, opcode: if wide { opcode } else { narrow }, wide };
    Some(match op {
        Op::Add => Recipe::Two(form(1, 0xfe, 0xd4)),
        Op::Subtract => Recipe::Two(form(1, 0xfa, 0xfb)),
        Op::Multiply => Recipe::Two(form(2, 0x40, 0x40)),
        Op::Minimum => Recipe::Two(form(2, 0x39, 0x39)),
        Op::Maximum => Recipe::Two(form(2, 0x3d, 0x3d)),
        Op::And => Recipe::Two(AND),
        Op::Or => Recipe::Two(OR),
        Op::Xor => Recipe::Two(EXCLUSIVE_OR),
        Op::Copy => Recipe::Copy,
        Op::Negative => Recipe::OfZero(form(1, 0xfa, 0xfb)),
        Op::Absolute => Recipe::One(form(2, 0x1e, 0x1f)),
        Op::Not => Recipe::With(EXCLUSIVE_OR, u64::MAX),
        Op::Divide | Op::Sqrt => return None,
    })
}
