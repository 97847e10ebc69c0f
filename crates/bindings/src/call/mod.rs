//! A call of an op: one walk from Python's operands to a push, for eager code, recordings and the tape.
//!
//! | station | file | asks |
//! |---|---|---|
//! | operands | `kind` | are these arrays at home, and Python's numbers? |
//! | plan | `plan` | element-wise: dtypes of the loop, by the operands' kinds |
//! | way | `way` | any other op: attributes in normal form, avals of results, native run, by operands and attributes |
//! | places | `walk` | new arrays beside the first operand |
//! | destination | `walk`, `native` | a loop, a native run, an answer of NumPy's at this moment |
//! | note | `walk` | the recording's, the tape's |
//!
//! Operators come here from their type slots (`operators`): a loop for operands of one dtype is looked up in a table of its own, as half
//! the price of `a + b` would be the walk's. Users' functions come from [`ArrayFunction`].
//!
//! A [`Callee`] keeps plans and ways. A rule in Python is called back once for each. Whatever the walk does not know goes to
//! Python's `carry` as it was given: array-likes, places to write to, masks, symbols, devices without a loop, ops that are computed
//! by a callable.

mod assign;
mod callee;
mod function;
mod kind;
mod native;
pub(crate) mod on_device;
mod operators;
mod plan;
mod table;
mod value;
mod walk;
mod way;

pub(crate) use assign::assign;
pub(crate) use callee::{Callee, set_carrier, set_composer};
pub(crate) use function::ArrayFunction;
pub(crate) use native::Native;
pub(crate) use operators::{binary, in_place, set_dispatch, unary};
pub(crate) use plan::Plan;
pub(crate) use walk::call;
pub(crate) use way::{Way, way_of};
