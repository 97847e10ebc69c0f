//! One call of a program.
//!
//! A call is checked (`check`), and then run by its caller if it is small, native throughout, and nothing is pending on its memory (`here`). Any
//! other is pushed (`pushed`): as one replay of the engine, whose own protocol heads `weft_engine`'s `replay`.
//!
//! # From instructions to steps
//!
//! Instructions are planned (`planned`: their order, and the places of temporaries in the arena), and then lowered (`lowered`; their edges follow
//! from the bytes that steps touch: `ports`), once for each set of devices on which a call's arrays are.
//!
//! | instruction | becomes |
//! |---|---|
//! | small, native | a plain step |
//! | large loop, fused loops, product | plain steps, one for each part (`weft_array::Portion`), which know each other only by the bytes that they touch |
//! | share of fused loops, that fails with other arrays than the rest | a member of each of these parts (`failure_groups`) |
//! | kernel of a network, whose blocks share memory | a step with a cell, with whose blocks idle workers help |
//! | callable, native function, what finishes later | a step with a cell; it is given arrays, which it is granted while it runs |
//! | constant that the program changes or hands out | a step that copies it, ahead of all that touches the copy |
//! | launch, copy within a device, with others of that device | a member of one step, which issues them together (`graphs`) |
//! | any, where devices are pools of their own | a step with a cell, in its device's lane |
//!
//! # Who comes after whom
//!
//! By bytes (`last_access`): of each entry, of the arena, of each variable. In an arena the bytes are of one entry after the
//! other, so the order that shared memory asks for follows by the same rule.
//!
//! | a step | comes after | is skipped with |
//! |---|---|---|
//! | reads bytes | their makers | their makers |
//! | changes bytes and sees them | their makers, and who has read them since | their makers |
//! | overwrites bytes | their makers, and who has read them since | nobody |
//! | uses bytes that were another entry's | their makers, and who has read them since if it writes | nobody |
//!
//! # Ports
//!
//! | entry | memory | ports |
//! |---|---|---|
//! | argument, state, constant | its buffer's | one for each range that is touched; ranges that overlap are one |
//! | result; temporary that somebody else's code sees | a buffer made for the call | the same |
//! | temporary | the arena's | none |
//!
//! A port has the strongest access of its users: a read, an overwrite if the old bytes are neither seen nor kept, or else a mutation. A step waits
//! for the ports of the ranges that it touches, and a port is left when the last of these steps is done. It has failed if one of the last steps to
//! change it has.
//!
//! # Which memory may die when
//!
//! | memory | is held by | until |
//! |---|---|---|
//! | buffers of all entries | the call's bindings | all its steps are done |
//! | the arena's block | the same; it is taken by the first step that lies there | the same |
//! | what kernels keep laid out (`layout_cache`) | the program | what it was made of is changed, or another array |
//! | steps, offsets | the program, and each call by the engine's plan | both are gone |
//!
//! The engine drops the bindings before it gives the call's instance to the next one. So at most as many blocks are out for
//! a program as it has instances: two, and one for each call that was made inside an op.
//!
//! Invariant: two steps that touch a byte, one of them writing to it, come after each other, unless they are parts of one instruction, which write to
//! different elements.
//! Invariant: the binding of ports is decided under the lock of the arrays, together with the push.

mod bound;
mod check;
mod failure_groups;
mod figures;
mod graphs;
mod here;
mod last_access;
mod layout_cache;
mod lives;
mod lowered;
mod planned;
mod ports;
mod program;
mod pushed;
mod times;

pub use figures::Figures;
pub use program::{Noting, Options, Output, Program};
