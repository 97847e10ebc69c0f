//! The example of every pass runs: its assertions are the test.

#[path = "../examples/passes.rs"]
mod passes;

#[test]
fn every_pass_runs_from_rust_alone() {
    passes::main().unwrap();
}
