//! What is refused: a payload is dropped where it may use arrays itself, and nothing has been changed.

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;
use weft_array::{
    Access, Array, ArrayError, Buffer, Call, DType, Layout, Operand, Ownership, Scalar, copy_if_there, copy_loop,
    copy_to_change, pick_rows, push, push_elementwise, push_pieces, put_back,
};
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
        engine.close().expect("there is nothing to do");
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

    unsafe fn run(&self, _: &weft_array::Operands, _: &mut OpContext<'_>) -> Result<(), Cause> {
        self.0.send(()).map_err(|error| Cause::Error(Box::new(error)))
    }
}

#[test]
fn for_a_step_that_needs_an_op() {
    let (sender, receiver) = channel();
    let step = weft_array::Step::Opaque(std::sync::Arc::new(Asked(sender)));
    // SAFETY: it has no operands.
    let refused = unsafe { step.run(&[]) };
    assert!(matches!(refused, Err(weft_array::ArrayError::Invalid(message)) if message.contains("needs an op")));
    assert!(receiver.try_recv().is_err());
}

/// An array of one axis, whose bytes are all this one.
fn filled(engine: &Engine, length: usize, dtype: DType, byte: u8) -> Array {
    let array = Array::empty(engine, &[length], dtype).expect("a small array");
    let start = array.buffer().start().expect("there is memory");
    // SAFETY: nobody else knows the array.
    unsafe { start.write_bytes(byte, array.bytes()) };
    array
}

#[test]
fn copies_go_to_places_of_their_length() {
    let (engine, _) = engine();
    let [one, other] = [1, 2].map(|byte| filled(&engine, 3, DType::Float64, byte));
    let mut block = vec![0_u8; 4096];
    for place in [0..4096, 0..25, 0..23, 4090..4114] {
        assert!(!copy_if_there(&engine, &[], &[&one], std::slice::from_ref(&place), &mut block), "{place:?}");
        assert!(copy_to_change(&engine, &[&one], std::slice::from_ref(&place), &mut block).is_none(), "{place:?}");
    }
    assert!(
        !copy_if_there(&engine, &[], &[&one, &other], std::slice::from_ref(&(0..24)), &mut block),
        "a place is missing"
    );
    assert!(copy_if_there(&engine, &[], &[&one, &other], &[0..24, 32..56], &mut block));
    assert!(block[..24].iter().all(|byte| *byte == 1) && block[32..56].iter().all(|byte| *byte == 2));
}

#[test]
fn nothing_is_put_back_into_memory_that_must_not_change() {
    let (engine, _) = engine();
    let own = filled(&engine, 3, DType::UInt8, 1);
    let (mut block, mut kept) = (vec![0; 3], vec![1_u8; 3]);
    let start = std::ptr::NonNull::new(kept.as_mut_ptr()).expect("an allocation");
    // SAFETY: the bytes live as long as the vector does, which the buffer keeps.
    let buffer = unsafe { Buffer::foreign(&engine, start, 3, true, Ownership::Owned, Box::new(kept)) };
    let fixed = Array::on(buffer, own.layout().clone(), DType::UInt8).expect("it is as long");
    let copied = copy_to_change(&engine, &[&own], std::slice::from_ref(&(0..3)), &mut block).expect("it is there");
    assert!(!put_back(&engine, &[&fixed], &copied, &[7; 3]), "it is read-only");
    assert!(put_back(&engine, &[&own], &copied, &[7; 3]));
}

#[test]
fn rows_are_written_to_arrays_of_their_shape() {
    let (engine, _) = engine();
    let (x, key) = (filled(&engine, 8, DType::Float64, 1), filled(&engine, 4, DType::Int64, 0));
    let pick = |shape: &[usize], dtype| {
        pick_rows(&x, &key, PushOptions::default(), |wanted| {
            assert_eq!(wanted, [4]);
            Array::empty(&engine, shape, dtype)
        })
    };
    for (shape, dtype) in
        [(&[1][..], DType::Bool), (&[4], DType::Float32), (&[2], DType::Float64), (&[2, 2], DType::Float64)]
    {
        assert!(matches!(pick(shape, dtype), Err(ArrayError::Invalid(_))), "{shape:?}");
    }
    assert!(pick_rows(&x, &key, PushOptions::default(), |_| Ok(x.clone())).is_err());
    assert!(pick(&[4], DType::Float64).is_ok_and(|picked| picked.is_some()));
}

#[test]
fn rows_are_picked_by_the_key_that_there_is() {
    let (engine, _) = engine();
    let (x, key) = (filled(&engine, 8, DType::Float64, 1), filled(&engine, 4, DType::Int64, 0));
    let picked = pick_rows(&x, &key, PushOptions::default(), |shape| {
        // Another thread could do so at this moment.
        push_elementwise(
            copy_loop(DType::Int64),
            &[&key],
            &[Operand::Scalar(Scalar::Int(7), DType::Int64)],
            PushOptions::default(),
        )?;
        Array::empty(&engine, shape, DType::Float64)
    });
    assert!(picked.is_ok_and(|picked| picked.is_none()), "the key has changed");
}

#[test]
fn pieces_are_of_what_they_are_copied_into() {
    let (engine, _) = engine();
    let (out, long) = (filled(&engine, 4, DType::Float64, 0), filled(&engine, 64, DType::Float64, 1));
    let (narrow, other) = (filled(&engine, 4, DType::Float32, 1), filled(&engine, 4, DType::Float64, 1));
    for piece in [(out.clone(), long.clone()), (long, out.clone()), (out.clone(), narrow), (other.clone(), out.clone())]
    {
        assert!(matches!(push_pieces(&out, &[piece], PushOptions::default()), Err(ArrayError::Invalid(_))));
    }
    push_pieces(&out, &[(out.clone(), other)], PushOptions::default()).expect("they are alike");
}

#[test]
fn a_refused_op_has_written_nothing() {
    let (engine, _) = engine();
    let array = filled(&engine, 24, DType::UInt8, 0);
    let slice = |start: usize, end: usize| {
        let layout = Layout { offset: start, ..Layout::contiguous(&[end - start], 1).expect("small") };
        Array::on(Arc::clone(array.buffer()), layout, DType::UInt8).expect("inside")
    };
    let (first, rest) = (slice(0, 8), slice(8, 16));
    let run = |array: &Array, access, body: Box<dyn FnOnce() -> Result<(), Cause> + Send>| {
        let arrays = [(array, access)];
        push(move |_: &mut OpContext<'_>| body(), &Call::on(array.engine(), &arrays, PushOptions::default()))
    };
    // All of it fails; then one range is written, so that the ranges are apart.
    run(&array, Access::Overwrite, Box::new(|| Err(Cause::Cancelled))).expect("an open engine");
    run(&first, Access::Overwrite, Box::new(|| Ok(()))).expect("an open engine");
    let (go, gone) = channel::<()>();
    let (tell, told) = channel();
    let reader = rest.clone();
    run(
        &first,
        Access::Read,
        Box::new(move || {
            let _ = gone.recv();
            // Inside an op, which the engine waits for, a push is let through.
            let arrays = [(&reader, Access::Read)];
            let read = move |_: &mut OpContext<'_>| tell.send(()).map_err(|error| Cause::Error(Box::new(error)));
            push(read, &Call::on(reader.engine(), &arrays, PushOptions::default()))
                .map_err(|error| Cause::Error(Box::new(error)))
        }),
    )
    .expect("an open engine");
    let closing = {
        let engine = engine.clone();
        std::thread::spawn(move || engine.close())
    };
    while !engine.is_closed() {
        std::thread::yield_now();
    }
    assert!(run(&rest, Access::Overwrite, Box::new(|| Ok(()))).is_err(), "the engine is closed");
    drop(go);
    let _ = closing.join().expect("it does not panic");
    assert!(told.recv().is_err(), "the range that nobody has written is still that of the op that failed");
}
