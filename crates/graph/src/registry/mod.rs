//! The open registry of ops: names, aliases, groups, and attributes of any type, which count by level.

mod describe;
mod group;
mod key;
mod lookup;
mod op;
mod rule;

pub use crate::error::RuleError;
pub use describe::Argument;
pub use group::{Group, Trigger};
pub use key::{KEYS, canonical};
pub use lookup::Registry;
pub use op::{OPERANDS, Op};
pub use rule::{
    Call, Corrected, Cost, Given, Identity, LayoutRule, Layouts, OpCost, OpWorkspace, Saying, ShapeRule, SharedLayout,
    SharedShapeRule, SharedTypeRule, TextRule, TypeRule,
};
