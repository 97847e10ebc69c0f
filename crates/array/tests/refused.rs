//! A push that is refused drops its payload where the payload may use arrays itself.

use std::sync::mpsc::{Sender, channel};
use std::time::Duration;
use weft_array::{Access, Array, Call, DType, push};
use weft_engine::{AccessKind, Cause, Engine, EngineError, OpContext, Payload, PushOptions, Settings};

/// Asks an array when it is dropped, which takes the lock under which ops are pushed.
struct Asks(Array, Sender<bool>);

impl Drop for Asks {
    fn drop(&mut self) {
        let array = &self.0;
        let arrays = [(array, Access::Read)];
        let request = Call::anywhere(array.buffer().engine(), &arrays, PushOptions::default());
        let refused = push(|_: &mut OpContext<'_>| Ok(()), &request).is_err();
        self.1.send(refused).expect("the test listens");
    }
}

impl Payload for Asks {
    fn run(self, _: &mut OpContext<'_>) -> Result<(), Cause> {
        Ok(())
    }
}

/// Runs it on a thread, which would hang for ever if the lock were held, and answers what the payload found.
fn dropped_by(work: impl FnOnce(Sender<bool>) + Send + 'static) -> bool {
    let (sender, receiver) = channel();
    std::thread::spawn(move || work(sender));
    receiver.recv_timeout(Duration::from_secs(200)).expect("the lock is free")
}

fn engine() -> (Engine, Array) {
    let engine = Engine::new(Settings { workers: Some(1), ..Settings::default() }).expect("valid settings");
    let array = Array::empty(&engine, &[3], DType::Float64).expect("a small array");
    (engine, array)
}

#[test]
fn by_a_closed_engine() {
    assert!(dropped_by(|sender| {
        let (engine, array) = engine();
        engine.close(false, None, None).expect("there is nothing to do");
        let payload = Asks(array.clone(), sender);
        let arrays = [(&array, Access::Read)];
        assert!(push(payload, &Call::anywhere(&engine, &arrays, PushOptions::default())).is_err());
    }));
}

#[test]
fn for_a_variable_that_is_deleted() {
    assert!(!dropped_by(|sender| {
        let (engine, array) = engine();
        let variable = engine.new_variable(None);
        engine.delete_variable(&variable, |_: &mut OpContext<'_>| Ok(()), None).expect("an open engine");
        let (arrays, variables) = ([(&array, Access::Read)], [(&variable, AccessKind::Read)]);
        let call = Call { variables: &variables, ..Call::anywhere(&engine, &arrays, PushOptions::default()) };
        let refused = push(Asks(array.clone(), sender), &call);
        assert!(matches!(refused, Err(weft_array::ArrayError::Engine(EngineError::VariableDeleted { .. }))));
    }));
}

/// Answers whether it has run.
struct Asked(std::sync::mpsc::Sender<()>);

impl weft_array::Opaque for Asked {
    fn is_hosted(&self) -> bool {
        false
    }

    fn run(&self, _: &weft_array::Operands, _: &mut OpContext<'_>) -> Result<(), Cause> {
        self.0.send(()).map_err(|error| Cause::Error(Box::new(error)))
    }
}

#[test]
fn for_a_step_that_needs_an_op() {
    let (sender, receiver) = channel();
    let step = weft_array::Step::Opaque(std::sync::Arc::new(Asked(sender)));
    // SAFETY: it has no operands.
    let refused = unsafe { step.run(&[]) };
    assert!(matches!(refused, Err(weft_array::ArrayError::Invalid(message)) if message.contains("push it")));
    assert!(receiver.try_recv().is_err());
    let (engine, array) = engine();
    let arrays = [(&array, Access::Mutate)];
    // SAFETY: an opaque step is bound to whatever arrays there are.
    unsafe { weft_array::push_step(&step, Call::anywhere(&engine, &arrays, PushOptions::default())) }
        .expect("an open engine");
    engine.wait_for_all().expect("the step does not fail");
    assert!(receiver.try_recv().is_ok());
}
