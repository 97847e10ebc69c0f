//! A call of an op: one walk from Python's operands to a push, for eager code, recordings and the tape.
//!
//! | station | file | asks |
//! |---|---|---|
//! | entry | `entry` | which op, operands, attributes, places? |
//! | operands | `kind` | are these arrays at home, and Python's numbers? |
//! | loop | `alike` | are all operands of one dtype whose loop is known? |
//! | facts | `callee` | does the op know this call already? |
//! | plan | `plan` | element-wise: dtypes of the loop, by the operands' kinds |
//! | way | `way`, `value` | any other op: attributes in normal form, avals of results, native run, by operands and attributes |
//! | places | `walk` | new arrays beside the first operand |
//! | destination | `walk`, `native`, `on_device` | a loop, a native run, a kernel of a device, an answer of NumPy's at this moment |
//! | note | `walk` | the recording's, the tape's |
//!
//! Operators come here from their type slots (`operators`). ``x[key]`` and ``x[key] = value`` come from their own slots
//! (`indexing`), because their places are known. Users' functions come from [`ArrayFunction`](function::ArrayFunction) (`function`).
//!
//! A [`Callee`] keeps plans and ways, in tables with numbers as keys (`table`). Each plan or way costs one call of a
//! rule in Python, and one of the function that makes a kernel ([`Native::by`]). All calls beyond the walk go to
//! Python's `carry` unchanged: array-likes, places to write to, masks, devices without a loop, ops computed by a
//! callable. Symbols go to `compose`.

mod alike;
mod callee;
mod entry;
mod function;
pub(crate) mod indexing;
mod kind;
mod native;
pub(crate) mod on_device;
mod operators;
mod plan;
mod table;
mod value;
mod walk;
mod way;

pub(crate) use callee::{Callee, set_carrier, set_composer};
pub(crate) use entry::add_call;
pub(crate) use function::add_array_function;
pub(crate) use native::Native;
pub(crate) use operators::{binary, in_place, set_dispatch, unary};
pub(crate) use plan::Plan;
pub(crate) use way::{Way, way_of};
