//! Texts through three stages: each op says what it touches, and what may overlap follows from that.
//!
//! `cargo run --release -p weft-engine --example pipeline`

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use weft_engine::{Engine, OpContext, Settings};

/// A value that ops share. The engine orders who touches it, so nobody ever waits for the lock: it is there for the
/// compiler, which knows nothing of variables.
#[derive(Default)]
struct Shared<T>(Arc<Mutex<T>>);

impl<T> Shared<T> {
    fn with<R>(&self, body: impl FnOnce(&mut T) -> R) -> R {
        body(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let engine = Engine::new(Settings { name: Some("pipeline".to_owned()), ..Settings::default() })?;
    let (report, lines) = (engine.new_variable(Some("report")), Shared::<Vec<String>>::default());

    for number in 0..8 {
        let (text, text_var) = (Shared::<String>::default(), engine.new_variable(Some("text")));
        let (words, words_var) = (Shared::<usize>::default(), engine.new_variable(Some("words")));

        let loaded = text.clone();
        let load = move |_: &mut OpContext<'_>| {
            loaded.with(|text| *text = "the weft crosses the warp ".repeat(number));
            Ok(())
        };
        engine.op(load).overwrite(&text_var).name("load").push()?;

        let counted = words.clone();
        let count = move |_: &mut OpContext<'_>| {
            let found = text.with(|text| text.split_whitespace().count());
            counted.with(|words| *words = found);
            Ok(())
        };
        engine.op(count).read(&text_var).overwrite(&words_var).name("count").push()?;

        let lines = lines.clone();
        let tell = move |_: &mut OpContext<'_>| {
            let line = format!("text {number}: {} words", words.with(|words| *words));
            lines.with(|lines| lines.push(line));
            Ok(())
        };
        // All of these mutate the report, so its lines come in the order of the pushes. All else overlaps.
        engine.op(tell).read(&words_var).mutate(&report).name("tell").push()?;
    }

    engine.wait_for_var(&report)?;
    let lines = lines.with(std::mem::take);
    println!("{}", lines.join("\n"));
    assert_eq!(lines.len(), 8);
    assert_eq!(lines[7], "text 7: 35 words");
    engine.close()?;
    Ok(())
}
