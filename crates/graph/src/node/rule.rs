//! The statements of an op about nodes. It says so as attributes of any type, so the registry knows nothing
//! of them.

use super::{NodeEntry, NodeRef};
use crate::error::RuleError;
use crate::value::Attributes;
use std::sync::Arc;

/// The value of `gradient`: entries of gradients of the inputs, from those of the outputs. None is zero.
pub trait GradientRule: Send + Sync {
    /// Composes the gradients of the inputs of a call from those of its outputs.
    fn gradient(
        &self,
        of: &Differentiated<'_>,
        grads: &[Option<NodeEntry>],
    ) -> Result<Vec<Option<NodeEntry>>, RuleError>;
}

/// The call of a wanted gradient. Its inputs and outputs are those of the node, or others of the same values that are
/// computed again.
#[derive(Debug, Clone, Copy)]
pub struct Differentiated<'a> {
    /// The call.
    pub node: &'a NodeRef,
    /// Its inputs.
    pub inputs: &'a [NodeEntry],
    /// Its outputs.
    pub outputs: &'a [NodeEntry],
    /// For each input, whether its gradient is asked for.
    pub needs: &'a [bool],
}

impl<F> GradientRule for F
where
    F: Fn(&Differentiated<'_>, &[Option<NodeEntry>]) -> Result<Vec<Option<NodeEntry>>, RuleError> + Send + Sync,
{
    fn gradient(
        &self,
        of: &Differentiated<'_>,
        grads: &[Option<NodeEntry>],
    ) -> Result<Vec<Option<NodeEntry>>, RuleError> {
        self(of, grads)
    }
}

/// The value of `gradient`, shared.
pub type SharedGradient = Arc<dyn GradientRule>;

/// The value of `set_input_attribute`: called with a variable that was made for input `index`, sets its attributes.
pub type SetInputAttribute = Arc<dyn Fn(&Attributes, &NodeRef, usize) -> Result<(), RuleError> + Send + Sync>;
