//! Any text is a value, which is written as a text that reads as the same value.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weft_graph::value::{layout_axes, parse, unquoted};

fuzz_target!(|text: &str| {
    let value = parse(text);
    let written = value.to_string();
    let again = parse(&written);
    assert_eq!(again.to_string(), written, "{text:?}");
    if !written.contains("nan") {
        assert_eq!(again, value, "{text:?} is written as {written:?}");
    }
    let _ = unquoted(&value);
    let _ = layout_axes(text);
});
