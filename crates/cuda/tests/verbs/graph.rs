//! Graphs: recorded once, replayed as one op.

use crate::{Array, KERNEL, Machine, WORDS, Watchdog};
use std::sync::Arc;
use weft_cuda::driver::Pattern;
use weft_cuda::simulated::{FaultKind, Settings};
use weft_cuda::{Access, CudaError, Graph, Label, Region};
use weft_engine::{AccessKind, Wait};

#[test]
fn a_replay_does_what_was_recorded() {
    let _watchdog = Watchdog::new("a replay does what was recorded");
    for seed in 0..20 {
        let machine = Machine::new(Settings { seed, ..Settings::default() }, 2);
        let (x, y, z) = (machine.array(0, WORDS), machine.array(0, WORDS), machine.array(0, WORDS));
        let mut recorder = machine.device(0).record(&Label::from("step")).expect("a recorder");
        recorder.fill(&Label::from("fill"), &Region::whole(&z.buffer), Pattern::Word(1)).expect("it is recorded");
        recorder.launch(&machine.prepared("axpy", &y, &z, 2)).expect("it is recorded");
        recorder.launch(&machine.prepared("scale", &x, &y, 1)).expect("it is recorded");
        recorder
            .copy(&Label::from("copy"), &Region::whole(&z.buffer), &Region::whole(&x.buffer))
            .expect("it is recorded");
        let graph = recorder.finish(|_| false, Box::new(())).expect("a graph");
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
    recorder.fill(&Label::from("fill"), &Region::whole(&x.buffer), Pattern::Byte(0)).expect("it is recorded");
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
    recorder.fill(&Label::from("fill"), &Region::whole(&x.buffer), Pattern::Byte(1)).expect("it is recorded");
    let graph = recorder.finish(|_| false, Box::new(())).expect("a graph");
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

/// What each of these ops needs of others, two by two, in a graph of a diamond with a side branch.
fn diamond(machine: &Machine) -> (Graph, [Array; 5]) {
    let arrays = [(); 5].map(|()| machine.array(0, WORDS));
    let [x, left, right, out, other] = &arrays;
    machine.fill(x, 1);
    machine.fill(other, 1);
    let mut recorder = machine.device(0).record(&Label::from("diamond")).expect("a recorder");
    for (kernel, to, from, factor) in [
        ("scale", left, x, 2),
        ("scale", right, x, 3),
        ("scale", out, left, 1),
        ("axpy", out, right, 1),
        ("scale", other, other, 5),
        ("axpy", x, out, 1),
    ] {
        recorder.launch(&machine.prepared(kernel, to, from, factor)).expect("it is recorded");
    }
    (recorder.finish(|_| false, Box::new(())).expect("a graph"), arrays)
}

fn push(machine: &Machine, graph: &Graph, arrays: &[Array; 5]) {
    let [x, left, right, out, other] = arrays;
    let op = machine.engine.op(graph.clone()).name("replay").mutate(&x.variable).mutate(&other.variable);
    let op = [left, right, out].into_iter().fold(op, |op, array| op.overwrite(&array.variable));
    op.push().expect("an open engine");
}

#[test]
fn ops_that_have_nothing_to_do_with_each_other_run_side_by_side() {
    let _watchdog = Watchdog::new("ops of a graph run side by side");
    for (dependencies, levels) in [(true, 4), (false, 6)] {
        let machine = Machine::new(Settings { dependencies, ..Settings::default() }, 2);
        let (graph, arrays) = diamond(&machine);
        machine.engine.wait_for_all().expect("no op fails");
        machine.driver.run_until_idle();
        let before = machine.driver.time();
        push(&machine, &graph, &arrays);
        machine.engine.wait_for_all().expect("no op fails");
        machine.driver.run_until_idle();
        assert_eq!(machine.driver.time() - before, levels * KERNEL);
        assert_eq!(machine.value(&arrays[0]), vec![6 * 0x1_0000_0001; WORDS]);
        assert_eq!(machine.value(&arrays[4]), vec![5 * 0x1_0000_0001; WORDS]);
        machine.check();
    }
}

#[test]
fn each_edge_is_needed() {
    let _watchdog = Watchdog::new("each edge is needed");
    let run = |nth: Option<u64>| {
        let machine = Machine::new(Settings::default(), 1);
        if let Some(nth) = nth {
            machine.driver.drop_edge(nth);
        }
        let (graph, arrays) = diamond(&machine);
        push(&machine, &graph, &arrays);
        machine.engine.wait_for_all().expect("no op fails");
        machine.driver.run_until_idle();
        (machine.driver.edges(), machine.driver.take_hazards())
    };
    let (edges, hazards) = run(None);
    assert_eq!(
        (edges, hazards.len()),
        (4, 0),
        "scale(out) after left, axpy(out) after it and right, axpy(x) after that"
    );
    for nth in 1..=edges {
        assert!(run(Some(nth)).1.iter().any(|hazard| hazard.contains("is not ordered behind")), "edge {nth}");
    }
}

#[test]
fn memory_that_a_graph_alone_knows_is_ordered_and_freed_with_it() {
    let _watchdog = Watchdog::new("memory that a graph alone knows");
    let machine = Machine::new(Settings::default(), 2);
    let (x, y) = (machine.array(0, WORDS), machine.array(0, WORDS));
    machine.fill(&x, 1);
    machine.fill(&y, 0);
    machine.engine.wait_for_all().expect("no op fails");
    let before = machine.driver.holdings().blocks;
    let mut recorder = machine.device(0).record(&Label::from("hidden")).expect("a recorder");
    let hidden = machine.array(0, WORDS);
    recorder.launch(&machine.prepared("scale", &hidden, &x, 2)).expect("it is recorded");
    recorder.launch(&machine.prepared("axpy", &y, &hidden, 1)).expect("it is recorded");
    let graph = recorder.finish(|buffer| Arc::ptr_eq(buffer, &hidden.buffer), Box::new(())).expect("a graph");
    assert_eq!(graph.hidden_bytes(), WORDS * 8);
    drop(hidden);
    for _ in 0..20 {
        machine.engine.op(graph.clone()).read(&x.variable).mutate(&y.variable).push().expect("an open engine");
    }
    drop(graph);
    assert_eq!(machine.value(&y), vec![40 * 0x1_0000_0001; WORDS]);
    assert!(machine.cuda.shut_down(std::time::Duration::from_secs(20)));
    machine.cuda.trim().expect("kept blocks are freed");
    machine.driver.run_until_idle();
    assert_eq!(machine.driver.holdings().blocks, before, "its memory went with it");
    machine.check();
}

#[test]
fn foreign_code_is_recorded_between_begin_and_end() {
    let _watchdog = Watchdog::new("foreign code is recorded");
    let machine = Machine::new(Settings::default(), 1);
    let (x, y) = (machine.array(0, WORDS), machine.array(0, WORDS));
    machine.fill(&x, 1);
    let label = Label::from("foreign");
    let mut recorder = machine.device(0).record(&label).expect("a recorder");
    recorder.launch(&machine.prepared("scale", &y, &x, 2)).expect("it is recorded");
    recorder.launch(&machine.prepared("axpy", &x, &x, 2)).expect("it is recorded");
    let addresses = recorder.begin(&label, &[Access::mutate(&y.buffer)]).expect("it begins");
    assert_eq!(addresses.len(), 1);
    assert!(recorder.is_behind(0) && !recorder.is_behind(1));
    let nested = recorder.fill(&label, &Region::whole(&y.buffer), Pattern::Byte(0));
    assert!(nested.is_err_and(|error| error.to_string().contains("pushed by an op that is being recorded")));
    assert_eq!(recorder.end(&label).expect("it ends"), 2);
    recorder.fail("op 'foreign' was recorded in part".to_owned());
    assert!(recorder.launch(&machine.prepared("scale", &y, &x, 2)).is_err());
    let error = recorder.finish(|_| false, Box::new(())).expect_err("it is spoiled");
    assert_eq!(error.to_string(), "op 'foreign' was recorded in part");
    assert_eq!(machine.value(&x), vec![0x1_0000_0001; WORDS], "nothing has run");
    machine.check();
}

#[test]
fn what_the_driver_refuses_spoils_the_capture() {
    let _watchdog = Watchdog::new("what is refused spoils the capture");
    let machine = Machine::new(Settings { devices: 2, ..Settings::default() }, 1);
    let (x, far) = (machine.array(0, WORDS), machine.array(1, WORDS));
    machine.fill(&x, 1);
    machine.engine.wait_for_all().expect("no op fails");
    let before = machine.driver.holdings().images;
    let mut recorder = machine.device(0).record(&Label::from("step")).expect("a recorder");
    let elsewhere = recorder.fill(&Label::from("fill"), &Region::whole(&far.buffer), Pattern::Byte(0));
    let message = "op 'fill' uses memory of cuda:1, and what is recorded runs on cuda:0";
    assert_eq!(elsewhere.expect_err("it is refused").to_string(), message);
    let own = machine.device(0).new_stream().expect("a stream");
    let named = recorder.launch(&machine.prepared("axpy", &x, &x, 2).stream(Some(own))).expect_err("it is refused");
    assert!(named.to_string().contains("names a stream"), "{named}");
    machine.driver.order_fault(FaultKind::Launch, 0, 1);
    let refused = recorder.launch(&machine.prepared("axpy", &x, &x, 2)).expect_err("it is refused").to_string();
    assert!(refused.starts_with("op 'axpy' (#2) cannot be captured: cuLaunchKernel answered"), "{refused}");
    assert_eq!(recorder.finish(|_| false, Box::new(())).expect_err("no graph").to_string(), refused);
    assert_eq!(machine.driver.holdings().images, before + 1, "the kernel's module");
    machine.check();
}
