//! The description of an op for people.

use super::Op;
use std::fmt::Write;
use std::sync::Arc;

/// An argument that an op describes.
#[derive(Debug, Clone)]
pub struct Argument {
    /// Its name.
    pub name: Arc<str>,
    /// Its type, in words.
    pub kind: Arc<str>,
    /// What it is.
    pub text: Arc<str>,
}

impl Op {
    /// Describes the op.
    pub fn describe(&self, text: &str) {
        self.write().description = text.into();
    }

    /// Describes an argument, anew if one has that name.
    pub fn add_argument(&self, name: &str, kind: &str, text: &str) {
        let argument = Argument { name: name.into(), kind: kind.into(), text: text.into() };
        let arguments = &mut self.write().arguments;
        match arguments.iter_mut().find(|known| *known.name == *name) {
            Some(known) => *known = argument,
            None => arguments.push(argument),
        }
    }

    /// The arguments that were described, in order.
    #[must_use]
    pub fn arguments(&self) -> Vec<Argument> {
        self.read().arguments.clone()
    }

    /// The description and the arguments, as numpydoc has them.
    #[must_use]
    pub fn docstring(&self) -> String {
        let state = self.read();
        let mut text = state.description.to_string();
        if !state.arguments.is_empty() {
            text.push_str(if text.is_empty() { "" } else { "\n\n" });
            text.push_str("Parameters\n----------\n");
            for each in &state.arguments {
                // Writing to a string does not fail.
                let _ = writeln!(text, "{} : {}\n    {}", each.name, each.kind, each.text);
            }
        }
        text
    }
}
