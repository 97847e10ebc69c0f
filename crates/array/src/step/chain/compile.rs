//! From loops to a program: the choice of registers or memory for values, and the moments of stores.
//!
//! A *value* is the result of a loop, or the content of a part before the chain. Its home is the part that its loop
//! writes. It is stored there at once if it is read after the chain, else only if its register is needed before its
//! last use. Instructions stay in the order of their loops. A part is never stored before its loop would have written
//! it, nor read after a later loop has: so operands may share memory wherever the loops allow it.

use super::code::{Instruction, Op, Place, STORE_A, STORE_B, code};
use super::{Home, Input, Line, Own, Splat};
use crate::DType;
use crate::step::Part;
use crate::step::exact::{Function, Numbers};
use std::collections::BTreeMap;

/// The result of a loop.
struct Value {
    /// The loops that read it, by number.
    readers: Vec<usize>,
    /// Whether it is read after the chain.
    lives: bool,
    is_stored: bool,
}

/// An operand of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operand {
    /// The value of the loop of this number.
    Value(usize),
    /// The content of a part before the chain.
    Before(Part),
    /// The first element of a part that the chain does not write.
    One(Part),
    Number(Splat),
}

pub(super) struct Compiler<'a> {
    lines: &'a [Line],
    values: Vec<Value>,
    /// By loop.
    operands: Vec<Vec<Operand>>,
    /// The values in the registers.
    registers: [Option<usize>; 2],
    /// Whether a part is a slot with room for one tile, which each tile overwrites.
    kept: Box<dyn Fn(Part) -> bool + 'a>,
    /// Parts that are copied to a tile of the chain's own, and the address of that tile.
    copied: BTreeMap<Part, u16>,
    /// Parts of whose first element there is a tile, and its address.
    ones: BTreeMap<Part, u16>,
    pub(super) program: Vec<Instruction>,
    pub(super) homes: Vec<Home>,
    pub(super) splats: Vec<Splat>,
}

const REGISTERS: [Place; 2] = [Place::A, Place::B];

/// Reads of a part from which on it is copied first: it may be unaligned, and a load across cache lines takes twice as
/// long.
const OFTEN: usize = 4;

impl<'a> Compiler<'a> {
    pub(super) fn new(lines: &'a [Line], dtype: DType, is_read_after: &'a dyn Fn(usize) -> bool) -> Self {
        let item = dtype.size();
        let mut values: Vec<Value> = Vec::with_capacity(lines.len());
        let mut operands = Vec::with_capacity(lines.len());
        let mut last: BTreeMap<Part, usize> = BTreeMap::new();
        let mut before = Vec::new();
        for (number, line) in lines.iter().enumerate() {
            let read = line.inputs.iter().map(|input| match input {
                Input::Number(number) => Operand::Number(Splat::new(number, item)),
                Input::One(part) => Operand::One(*part),
                Input::At(part) => {
                    if let Some(value) = last.get(part) {
                        values[*value].readers.push(number);
                        Operand::Value(*value)
                    } else {
                        before.push(*part);
                        Operand::Before(*part)
                    }
                }
            });
            let mut read: Vec<Operand> = read.collect();
            match line.exact.function {
                Function::Square => read.extend_from_within(..1),
                Function::Rectify => read.push(Operand::Number(Splat::new(&[0; 16], item))),
                Function::Reciprocal => read.insert(0, Operand::Number(one(dtype))),
                _ => {}
            }
            if line.exact.swapped[line.form() as usize] {
                read.reverse();
            }
            operands.push(read);
            last.insert(line.output, number);
            values.push(Value { readers: Vec::new(), lives: false, is_stored: false });
        }
        let is_looked_at = |part: &Part| match part {
            Part::Array(_) => true,
            Part::Slot(slot) => is_read_after(*slot),
        };
        for (part, value) in &last {
            values[*value].lives = is_looked_at(part);
        }
        let kept = Box::new(move |part| !before.contains(&part) && !is_looked_at(&part));
        let (program, homes, splats) = (Vec::new(), Vec::new(), Vec::new());
        let (copied, ones) = (BTreeMap::new(), BTreeMap::new());
        Self { lines, values, operands, registers: [None; 2], kept, copied, ones, program, homes, splats }
    }

    /// None if it has more operands than an instruction can number.
    pub(super) fn compile(mut self) -> Option<Self> {
        self.copy()?;
        for at in 0..self.lines.len() {
            self.line(at)?;
        }
        Some(self)
    }

    /// Copies the parts with many reads to aligned tiles, while the registers are free.
    fn copy(&mut self) -> Option<()> {
        let mut reads: BTreeMap<Part, usize> = BTreeMap::new();
        for operand in self.operands.iter().flatten() {
            if let Operand::Before(part) = operand {
                *reads.entry(*part).or_default() += 1;
            }
        }
        for (part, _) in reads.into_iter().filter(|(_, count)| *count >= OFTEN) {
            let from = self.place(Operand::Before(part))?;
            self.emit(Op::Copy, Place::A, from, from);
            let address = self.own_home(part, Own::Copy)?;
            self.program.push(Instruction { code: STORE_A, address, splat: 0 });
            self.copied.insert(part, address);
        }
        Some(())
    }

    /// The number of the chain's own tiles.
    pub(super) fn tiles(&self) -> usize {
        self.copied.len() + self.ones.len()
    }

    /// The address of a new tile of the chain's own.
    fn own_home(&mut self, part: Part, content: Own) -> Option<u16> {
        let address = u16::try_from(self.homes.len()).ok()?;
        let own = Some((self.tiles(), content));
        self.homes.push(Home { part, own, is_kept: true, is_read: false, is_written: false });
        Some(address)
    }

    /// The next loop after `at` that reads a value.
    fn next_use(&self, value: usize, at: usize) -> Option<usize> {
        self.values[value].readers.iter().copied().find(|reader| *reader > at)
    }

    fn line(&mut self, at: usize) -> Option<()> {
        let op = self.lines[at].exact.function.op();
        let to = self.register(at)?;
        let operands = std::mem::take(&mut self.operands[at]);
        let first = self.place(operands[0])?;
        let second = match operands.get(1) {
            Some(operand) => self.place(*operand)?,
            None => first,
        };
        let in_register = |(place, _): (Place, u16)| matches!(place, Place::A | Place::B);
        if operands.len() == 1 {
            if op != Op::Copy || first.0 != to {
                self.emit(op, to, first, first);
            }
        } else if in_register(first) || in_register(second) {
            self.emit(op, to, first, second);
        } else if operands[0] == operands[1] {
            self.emit(Op::Copy, to, first, first);
            self.emit(op, to, (to, 0), (to, 0));
        } else if first.0 == Place::Splat && second.0 == Place::Memory {
            self.emit(Op::Copy, to, second, second);
            self.emit(op, to, first, (to, 0));
        } else {
            self.emit(Op::Copy, to, first, first);
            self.emit(op, to, (to, 0), second);
        }
        self.registers[to as usize] = Some(at);
        if self.values[at].lives {
            self.store(at, to)?;
        }
        Some(())
    }

    /// A register for the result of a loop. Its old value is needed no longer, or is stored.
    fn register(&mut self, at: usize) -> Option<Place> {
        let uses = self.registers.map(|value| value.and_then(|value| Some((self.next_use(value, at)?, value))));
        let to = match uses {
            [None, _] => 0,
            [_, None] => 1,
            [Some((first, one)), Some((second, other))] => {
                match (self.values[one].is_stored, self.values[other].is_stored) {
                    (true, false) => 0,
                    (false, true) => 1,
                    _ => usize::from(second > first),
                }
            }
        };
        let place = REGISTERS[to];
        if let Some((_, value)) = uses[to]
            && !self.values[value].is_stored
        {
            self.store(value, place)?;
        }
        Some(place)
    }

    /// The place of an operand, and its number.
    fn place(&mut self, operand: Operand) -> Option<(Place, u16)> {
        match operand {
            Operand::Value(value) => match self.registers.iter().position(|held| *held == Some(value)) {
                Some(register) => Some((REGISTERS[register], 0)),
                None => Some((Place::Memory, self.home(self.lines[value].output)?)),
            },
            Operand::Before(part) => {
                if let Some(address) = self.copied.get(&part) {
                    return Some((Place::Memory, *address));
                }
                let number = self.home(part)?;
                self.homes[usize::from(number)].is_read = true;
                Some((Place::Memory, number))
            }
            Operand::One(part) => {
                if let Some(address) = self.ones.get(&part) {
                    return Some((Place::Memory, *address));
                }
                let address = self.own_home(part, Own::One)?;
                self.ones.insert(part, address);
                Some((Place::Memory, address))
            }
            Operand::Number(splat) => {
                let known = self.splats.iter().position(|known| *known == splat);
                let number = known.unwrap_or_else(|| {
                    self.splats.push(splat);
                    self.splats.len() - 1
                });
                Some((Place::Splat, u16::try_from(number).ok()?))
            }
        }
    }

    fn home(&mut self, part: Part) -> Option<u16> {
        let known = self.homes.iter().position(|home| home.part == part && home.own.is_none());
        let number = known.unwrap_or_else(|| {
            let is_kept = (self.kept)(part);
            self.homes.push(Home { part, own: None, is_kept, is_read: false, is_written: false });
            self.homes.len() - 1
        });
        u16::try_from(number).ok()
    }

    fn emit(&mut self, op: Op, to: Place, left: (Place, u16), right: (Place, u16)) {
        let number = |of| [left, right].into_iter().find(|(place, _)| *place == of).map_or(0, |(_, number)| number);
        let (address, splat) = (number(Place::Memory), number(Place::Splat));
        self.program.push(Instruction { code: code(op, to, left.0, right.0), address, splat });
    }

    fn store(&mut self, value: usize, from: Place) -> Option<()> {
        let address = self.home(self.lines[value].output)?;
        self.homes[usize::from(address)].is_written = true;
        let code = if from == Place::A { STORE_A } else { STORE_B };
        self.program.push(Instruction { code, address, splat: 0 });
        self.values[value].is_stored = true;
        Some(())
    }
}

impl Line {
    fn form(&self) -> Numbers {
        match &self.inputs[..] {
            [Input::Number(_) | Input::One(_), Input::At(_)] => Numbers::Left,
            [Input::At(_), Input::Number(_) | Input::One(_)] => Numbers::Right,
            _ => Numbers::None,
        }
    }
}

/// The number 1.
fn one(dtype: DType) -> Splat {
    let mut number = [0; 16];
    match dtype {
        DType::Float32 => number[..4].copy_from_slice(&1_f32.to_ne_bytes()),
        _ => number[..8].copy_from_slice(&1_f64.to_ne_bytes()),
    }
    Splat::new(&number, dtype.size())
}
