//! What becomes of a failure, of work that another thread completes, and of a wait with a time limit.
//!
//! `cargo run --release -p weft-engine --example failures`

use std::error::Error;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;
use weft_engine::{Cause, Completion, Engine, EngineError, Failure, OpContext, Settings, Wait};

fn main() -> Result<(), Box<dyn Error>> {
    let engine = Engine::new(Settings { workers: Some(2), ..Settings::default() })?;
    let (number, double) = (engine.new_variable(Some("number")), engine.new_variable(Some("double")));

    // The failure of an op stays with what it was to write, and with all that needs that.
    let parse = |_: &mut OpContext<'_>| {
        let parsed: u32 = "seven".parse().map_err(|error| Cause::Error(Box::new(error) as _))?;
        assert_ne!(parsed, 7);
        Ok(())
    };
    engine.op(parse).overwrite(&number).name("parse").push()?;
    engine.op(|_| Ok(())).read(&number).overwrite(&double).name("double").push()?; // skipped
    match engine.wait_for_var(&double) {
        Err(EngineError::Failed(failure)) => {
            println!("{failure}");
            assert_eq!(failure.op(), "op 'parse'");
            // Written out, for `Error` is in scope, and an `Arc` of an error has a method of that name.
            assert!(matches!(Failure::cause(&failure), Cause::Error(_)));
        }
        other => panic!("it fails, and did not: {other:?}"),
    }

    // An overwrite that succeeds heals it. This one hands its token to another thread, and occupies no worker meanwhile.
    let (tokens, answers) = channel::<Completion>();
    let defer = move |tokens: &Sender<Completion>, context: &mut OpContext<'_>| {
        tokens.send(context.defer()).map_err(|error| Cause::Error(Box::new(error) as _))
    };
    engine.op(move |context: &mut OpContext<'_>| defer(&tokens, context)).overwrite(&number).name("ask").push()?;
    let token = answers.recv()?;

    let mut wait = Wait { timeout: Some(Duration::from_millis(20)), ..Wait::default() };
    match engine.wait_for_var_with(&number, &mut wait) {
        Err(EngineError::Timeout { what, .. }) => println!("{what} is not there yet"),
        other => panic!("nobody has used the token: {other:?}"),
    }
    thread::spawn(move || token.complete(Ok(())));
    engine.wait_for_var(&number)?;
    println!("{} has version {}", number.label(), number.completed_version());
    engine.close()?;
    Ok(())
}
