//! Graphs: recorded once, replayed as one op.

use crate::{Machine, WORDS, Watchdog};
use std::sync::Arc;
use weft_cuda::driver::Pattern;
use weft_cuda::simulated::{FaultKind, Settings};
use weft_cuda::{CudaError, Label, Region};
use weft_engine::{AccessKind, Wait};

#[test]
fn a_replay_does_what_was_recorded() {
    let _watchdog = Watchdog::new("a replay does what was recorded");
    for seed in 0..20 {
        let machine = Machine::new(Settings { seed, ..Settings::default() }, 2);
        let (x, y, z) = (machine.array(0, WORDS), machine.array(0, WORDS), machine.array(0, WORDS));
        let mut recorder = machine.device(0).record(&Label::from("step")).expect("a recorder");
        recorder.fill(&Region::whole(&z.buffer), Pattern::Word(1)).expect("it is recorded");
        recorder.launch(&machine.prepared("axpy", &y, &z, 2)).expect("it is recorded");
        recorder.launch(&machine.prepared("scale", &x, &y, 1)).expect("it is recorded");
        recorder.copy(&Region::whole(&z.buffer), &Region::whole(&x.buffer)).expect("it is recorded");
        let graph = recorder.finish().expect("a graph");
        assert_eq!(graph.ops(), 4);
        let kind = |buffer| graph.accesses().iter().find(|access| Arc::ptr_eq(&access.buffer, buffer)).map(|a| a.kind);
        assert_eq!(kind(&x.buffer), Some(AccessKind::Overwrite));
        assert_eq!((kind(&y.buffer), kind(&z.buffer)), (Some(AccessKind::Mutate), Some(AccessKind::Mutate)));
        machine.fill(&y, 0);
        for replay in 1..10_u64 {
            let op = machine.engine.op(graph.clone()).name("replay");
            op.overwrite(&x.variable).mutate(&y.variable).mutate(&z.variable).push().expect("an open engine");
            if replay % 3 == 0 {
                // Between replays the buffers are as good as any.
                let words = replay * 0x2_0000_0002;
                assert_eq!(machine.value(&z), vec![words; WORDS], "replay {replay}");
                machine.launch("scale", &x, &y, 3);
            }
        }
        drop(graph);
        assert_eq!(machine.value(&y), vec![9 * 0x2_0000_0002; WORDS]);
        machine.check();
    }
}

#[test]
fn a_recorder_that_is_dropped_leaves_nothing() {
    let _watchdog = Watchdog::new("a recorder that is dropped leaves nothing");
    let machine = Machine::new(Settings::default(), 1);
    let x = machine.array(0, WORDS);
    machine.fill(&x, 7);
    let before = machine.driver.holdings().images;
    let mut recorder = machine.device(0).record(&Label::from("dropped")).expect("a recorder");
    recorder.fill(&Region::whole(&x.buffer), Pattern::Byte(0)).expect("it is recorded");
    drop(recorder);
    assert_eq!(machine.driver.holdings().images, before);
    assert_eq!(machine.value(&x), vec![0x7_0000_0007; WORDS]);
    machine.check();
}

#[test]
fn a_graph_outlives_its_last_replay_and_not_longer() {
    let _watchdog = Watchdog::new("a graph outlives its last replay");
    let machine = Machine::new(Settings::default(), 1);
    let x = machine.array(0, WORDS);
    machine.fill(&x, 7);
    machine.engine.wait_for_all().expect("no op fails");
    let before = machine.driver.holdings().images;
    let mut recorder = machine.device(0).record(&Label::from("graph")).expect("a recorder");
    recorder.fill(&Region::whole(&x.buffer), Pattern::Byte(1)).expect("it is recorded");
    let graph = recorder.finish().expect("a graph");
    let fence = graph.replay().expect("it is issued");
    machine.driver.order_fault(FaultKind::Launch, 0, 1);
    assert!(matches!(graph.replay(), Err(CudaError::Refused { .. })));
    machine.driver.hold(fence.stream().handle(), true);
    drop(graph);
    assert_eq!(machine.driver.holdings().images, before + 2, "it runs");
    machine.driver.hold(fence.stream().handle(), false);
    fence.wait(&mut Wait::default()).expect("it ends");
    assert!(machine.cuda.shut_down(std::time::Duration::from_secs(20)));
    assert_eq!(machine.driver.holdings().images, before);
    machine.check();
}
