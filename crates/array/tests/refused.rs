//! A push that is refused drops its payload where the payload may use arrays itself.

use std::sync::mpsc::{Sender, channel};
use std::time::Duration;
use weft_array::{Access, Array, DType, PushRequest, push};
use weft_engine::{AccessKind, Cause, Engine, EngineError, OpContext, Payload, PushOptions, Settings};

/// Asks an array when it is dropped, which takes the lock under which ops are pushed.
struct Asks(Array, Sender<bool>);

impl Drop for Asks {
    fn drop(&mut self) {
        let array = &self.0;
        let options = PushOptions::default();
        let request = PushRequest {
            engine: array.buffer().engine(),
            arrays: &[(array, Access::Read)],
            variables: &[],
            options,
            at_arrays: false,
            anywhere: true,
        };
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
    receiver.recv_timeout(Duration::from_secs(30)).expect("the lock is free")
}

fn engine() -> (Engine, Array) {
    let engine = Engine::new(Settings { workers: Some(1), ..Settings::default() }).expect("valid settings");
    let array = Array::empty(&engine, &[3], DType::Float64).expect("a small array");
    (engine, array)
}

fn request<'a>(
    engine: &'a Engine,
    arrays: &'a [(&'a Array, Access)],
    variables: &'a [(&'a weft_engine::Variable, AccessKind)],
) -> PushRequest<'a> {
    PushRequest { engine, arrays, variables, options: PushOptions::default(), at_arrays: false, anywhere: true }
}

#[test]
fn by_a_closed_engine() {
    assert!(dropped_by(|sender| {
        let (engine, array) = engine();
        engine.close(false, None, None).expect("there is nothing to do");
        let payload = Asks(array.clone(), sender);
        assert!(push(payload, &request(&engine, &[(&array, Access::Read)], &[])).is_err());
    }));
}

#[test]
fn for_a_variable_that_is_deleted() {
    assert!(!dropped_by(|sender| {
        let (engine, array) = engine();
        let variable = engine.new_variable(None);
        engine.delete_variable(&variable, |_: &mut OpContext<'_>| Ok(()), None).expect("an open engine");
        let (arrays, variables) = ([(&array, Access::Read)], [(&variable, AccessKind::Read)]);
        let refused = push(Asks(array.clone(), sender), &request(&engine, &arrays, &variables));
        assert!(matches!(refused, Err(weft_array::ArrayError::Engine(EngineError::VariableDeleted { .. }))));
    }));
}
