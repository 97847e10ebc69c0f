//! Ops that are pushed many times: their accesses are checked once.

use super::{Accesses, Engine, PushOptions, Variable};
use crate::EngineError;
use crate::op::{Device, Payload};
use crate::var::AccessKind;

/// An op to be pushed again and again; each push runs a clone of its payload.
pub struct Operator<P> {
    engine: Engine,
    payload: P,
    variables: Vec<(Variable, AccessKind)>,
    name: Option<String>,
    priority: i32,
    device: Device,
    always_run: bool,
}

impl Engine {
    /// Makes an operator. The accesses are checked and merged here, once.
    pub fn new_operator<P: Payload + Clone>(
        &self,
        payload: P,
        variables: &[(&Variable, AccessKind)],
        options: &PushOptions<'_>,
    ) -> Result<Operator<P>, EngineError> {
        let mut accesses = Accesses::new(self);
        for (variable, kind) in variables {
            accesses.add(variable, *kind)?;
        }
        let merged = accesses.merged();
        let variables = merged
            .iter()
            .filter_map(|(node, kind)| {
                let found = variables.iter().find(|(variable, _)| variable.node_pointer() == *node);
                found.map(|(variable, _)| ((*variable).clone(), *kind))
            })
            .collect();
        Ok(Operator {
            engine: self.clone(),
            payload,
            variables,
            name: options.name.map(Into::into),
            priority: options.priority,
            device: options.device,
            always_run: options.always_run,
        })
    }
}

impl<P: Payload + Clone> Operator<P> {
    /// Pushes the op once more.
    pub fn push(&self) -> Result<(), EngineError> {
        let mut accesses = Accesses::new(&self.engine);
        for (variable, kind) in &self.variables {
            accesses.add(variable, *kind)?;
        }
        let options = PushOptions {
            priority: self.priority,
            name: self.name.as_deref(),
            device: self.device,
            always_run: self.always_run,
            ..PushOptions::default()
        };
        self.engine.push(self.payload.clone(), &mut accesses, &options)
    }

    /// The engine it pushes to.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }
}
