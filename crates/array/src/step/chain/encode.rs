//! Instructions of x86-64 as bytes: the few that chains need. Vectors have 256 bits, encoded by VEX, or 512, by EVEX.

/// The operand of an instruction that may lie in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operand {
    /// A vector register.
    Vector(u8),
    /// So many bytes behind the address in a general register, neither the number 4 nor 12, which need another encoding.
    Memory(u8, i32),
    /// A constant behind the code, by number.
    Constant(usize),
}

/// An instruction on vectors without its operands: the table of its opcode, its prefix by number, its opcode, and the bit
/// `W`, which EVEX sets for elements of 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) table: u8,
    pub(super) prefix: u8,
    pub(super) opcode: u8,
    pub(super) wide: bool,
}

/// The bits of a vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Width {
    Bits256,
    Bits512,
}

impl Width {
    pub(super) fn bytes(self) -> u8 {
        match self {
            Self::Bits256 => 32,
            Self::Bits512 => 64,
        }
    }

    /// The number of registers.
    pub(super) fn registers(self) -> u8 {
        match self {
            Self::Bits256 => 16,
            Self::Bits512 => 32,
        }
    }
}

/// Bytes of a constant: a vector of any width.
const CONSTANT: usize = 64;

/// Code in the making.
pub(super) struct Code {
    width: Width,
    bytes: Vec<u8>,
    constants: Vec<[u8; CONSTANT]>,
    /// Distances to constants: their place, the end of their instruction, the constant's number.
    distances: Vec<(usize, usize, usize)>,
}

impl Code {
    pub(super) fn new(width: Width) -> Self {
        Self { width, bytes: Vec::new(), constants: Vec::new(), distances: Vec::new() }
    }

    /// The place of the next instruction.
    pub(super) fn here(&self) -> usize {
        self.bytes.len()
    }

    /// Instructions as they are.
    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The number of a constant, a pattern that fills a vector.
    pub(super) fn constant(&mut self, pattern: u64) -> usize {
        let mut bytes = [0; CONSTANT];
        bytes.chunks_exact_mut(8).for_each(|to| to.copy_from_slice(&pattern.to_le_bytes()));
        self.constants.iter().position(|known| *known == bytes).unwrap_or_else(|| {
            self.constants.push(bytes);
            self.constants.len() - 1
        })
    }

    /// Loads a general register from so many bytes behind the address in another one.
    pub(super) fn load_general(&mut self, to: u8, from: u8, distance: i32) {
        self.raw(&[0x48 | (to >> 3) << 2 | from >> 3, 0x8b, 0x80 | (to & 7) << 3 | from & 7]);
        self.raw(&distance.to_le_bytes());
    }

    /// Adds one general register to another.
    pub(super) fn add_general(&mut self, to: u8, from: u8) {
        self.raw(&[0x48 | (from >> 3) << 2 | to >> 3, 0x01, 0xc0 | (from & 7) << 3 | to & 7]);
    }

    /// An instruction on vectors: its result, its first source, 0 if it has one source alone, and its last source.
    pub(super) fn vector(&mut self, form: Form, to: u8, first: u8, second: Operand) {
        self.vector_of_three(form, (to, 0), first, second, None);
    }

    /// The same with a register for masks, 0 for none, and with a last byte.
    pub(super) fn vector_of_three(
        &mut self,
        form: Form,
        (to, mask): (u8, u8),
        first: u8,
        second: Operand,
        last: Option<u8>,
    ) {
        let inverse = |bit: u8, at: u8| (!bit & 1) << at;
        let (base, upper) = match second {
            Operand::Vector(number) => (number, number >> 4),
            Operand::Memory(number, _) => (number, 0),
            Operand::Constant(_) => (0, 0),
        };
        let sources = (!first & 15) << 3 | form.prefix;
        match self.width {
            Width::Bits256 if form.table == 1 && base < 8 => {
                self.raw(&[0xc5, inverse(to >> 3, 7) | sources | 1 << 2]);
            }
            Width::Bits256 => {
                let registers = inverse(to >> 3, 7) | 1 << 6 | inverse(base >> 3, 5);
                self.raw(&[0xc4, registers | form.table, sources | 1 << 2]);
            }
            Width::Bits512 => {
                let registers = inverse(to >> 3, 7) | inverse(upper, 6) | inverse(base >> 3, 5) | inverse(to >> 4, 4);
                let wide = u8::from(form.wide) << 7;
                self.raw(&[0x62, registers | form.table, wide | sources | 1 << 2]);
                self.raw(&[2 << 5 | inverse(first >> 4, 3) | mask]);
            }
        }
        let register = (to & 7) << 3;
        self.raw(&[form.opcode]);
        let mut distance_to = None;
        match second {
            Operand::Vector(number) => self.raw(&[0xc0 | register | number & 7]),
            Operand::Memory(base, distance) => {
                // EVEX counts short distances in vectors.
                let unit = if self.width == Width::Bits512 { 64 } else { 1 };
                match i8::try_from(distance / unit) {
                    Ok(short) if distance % unit == 0 => {
                        self.raw(&[0x40 | register | base & 7, short.cast_unsigned()]);
                    }
                    _ => {
                        self.raw(&[0x80 | register | base & 7]);
                        self.raw(&distance.to_le_bytes());
                    }
                }
            }
            Operand::Constant(number) => {
                self.raw(&[register | 5]);
                distance_to = Some((self.here(), number));
                self.raw(&[0; 4]);
            }
        }
        self.bytes.extend(last);
        if let Some((at, number)) = distance_to {
            self.distances.push((at, self.here(), number));
        }
    }

    /// The bytes of the code with its constants behind it. None if they are too many for a distance.
    pub(super) fn finish(mut self) -> Option<Vec<u8>> {
        self.bytes.resize(self.bytes.len().next_multiple_of(CONSTANT), 0xcc); // a trap
        let start = self.bytes.len();
        for (at, end, number) in self.distances {
            let distance = i32::try_from(start + number * CONSTANT - end).ok()?;
            self.bytes[at..at + 4].copy_from_slice(&distance.to_le_bytes());
        }
        self.bytes.extend(self.constants.concat());
        Some(self.bytes)
    }
}
