//! Holding ops up until a test says so.

use std::sync::mpsc::channel;
use weft_engine::{Completion, Engine, OpContext, Variable};

/// Pushes an op that mutates the variable and stays unfinished, blocking no worker, until the
/// answered token is used. It has started when this returns.
pub(crate) fn shut(engine: &Engine, variable: &Variable) -> Completion {
    let (sender, receiver) = channel();
    let gate = move |context: &mut OpContext<'_>| {
        sender.send(context.defer()).expect("the test waits for it");
        Ok(())
    };
    engine.op(gate).name("gate").mutate(variable).push().expect("an open engine");
    receiver.recv().expect("the gate starts")
}
