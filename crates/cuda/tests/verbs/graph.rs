//! Bundles: issued together, as one graph where they lie where they did before.

use crate::{Array, KERNEL, Machine, WORDS, Watchdog, issue, issue_all};
use std::sync::Arc;
use weft_cuda::simulated::{FaultKind, Settings};
use weft_cuda::{Bundle, CopyWithin, Label, Member, Region};
use weft_engine::{Cause, OpContext, Wait};

fn launch(machine: &Machine, kernel: &'static str, out: &Array, x: &Array, factor: u64) -> Member {
    Member::Launch(machine.prepared(kernel, out, x, factor))
}

fn copy(to: &Array, from: &Array) -> Member {
    let copy = CopyWithin::new(Label::from("copy"), Region::whole(&to.buffer), Region::whole(&from.buffer));
    Member::Copy(copy.expect("as large"))
}

/// Pushes an issue of the bundle, which reads and changes these arrays.
fn push(machine: &Machine, bundle: &Arc<Bundle>, members: Vec<Member>, arrays: &[&Array]) {
    let bundle = Arc::clone(bundle);
    let issue = move |_: &mut OpContext<'_>| issue_all(&bundle, &members).map_err(Cause::from);
    let op = machine.engine.op_of(machine.device(0).issuing(issue)).name("bundle");
    arrays.iter().fold(op, |op, array| op.mutate(&array.variable)).push().expect("an open engine");
}

fn bundle(machine: &Machine) -> Arc<Bundle> {
    Arc::new(Bundle::new(&machine.device(0), Label::from("bundle")))
}

#[test]
fn a_graph_does_what_its_members_do() {
    let _watchdog = Watchdog::new("a graph does what its members do");
    for seed in 0..20 {
        let machine = Machine::new(Settings { seed, ..Settings::default() }, 2);
        let (x, y, z) = (machine.array(0, WORDS), machine.array(0, WORDS), machine.array(0, WORDS));
        let bundle = bundle(&machine);
        machine.fill(&y, 0);
        for issue in 1..10_u64 {
            machine.fill(&z, 1);
            let members = vec![launch(&machine, "axpy", &y, &z, 2), launch(&machine, "scale", &x, &y, 1), copy(&z, &x)];
            push(&machine, &bundle, members, &[&x, &y, &z]);
            if issue % 3 == 0 {
                // Between issues the buffers are as good as any.
                let words = issue * 0x2_0000_0002;
                assert_eq!(machine.value(&z), vec![words; WORDS], "issue {issue}");
                machine.launch("scale", &x, &y, 3);
            }
        }
        assert_eq!(machine.value(&y), vec![9 * 0x2_0000_0002; WORDS]);
        assert_eq!(bundle.launches(), 8, "the first time their addresses are new");
        drop(bundle);
        machine.check();
    }
}

#[test]
fn a_graph_is_launched_where_its_members_lie_as_they_did() {
    let _watchdog = Watchdog::new("a graph is launched where its members lie as they did");
    let machine = Machine::new(Settings::default(), 2);
    let bundle = bundle(&machine);
    let pairs: Vec<_> = (0..3).map(|_| (machine.array(0, WORDS), machine.array(0, WORDS))).collect();
    for (x, y) in &pairs {
        machine.fill(x, 1);
        machine.fill(y, 0);
    }
    for _ in 0..4 {
        for (x, y) in &pairs {
            let members = vec![launch(&machine, "axpy", y, x, 1), launch(&machine, "axpy", y, x, 2)];
            push(&machine, &bundle, members, &[x, y]);
        }
    }
    let values: Vec<_> = pairs.iter().map(|(_, y)| machine.value(y)[0] / 0x1_0000_0001).collect();
    assert_eq!(values, [12, 12, 12]);
    assert_eq!(bundle.launches(), 3 * 3);
    drop(bundle);
    machine.check();
}

#[test]
fn a_graph_outlives_its_last_launch_and_not_longer() {
    let _watchdog = Watchdog::new("a graph outlives its last launch");
    let machine = Machine::new(Settings::default(), 1);
    let (x, y) = (machine.array(0, WORDS), machine.array(0, WORDS));
    machine.fill(&x, 7);
    machine.fill(&y, 0);
    machine.launch("scale", &y, &x, 1);
    machine.engine.wait_for_all().expect("no op fails");
    let before = machine.driver.holdings().images;
    let bundle = Bundle::new(&machine.device(0), Label::from("bundle"));
    let members = [copy(&y, &x), copy(&x, &y)];
    (0..2).for_each(|_| issue_all(&bundle, &members).expect("it is issued"));
    assert_eq!((bundle.launches(), machine.driver.holdings().images), (1, before + 2), "the graph, made ready");
    machine.driver.order_fault(FaultKind::Launch, 0, 1);
    let refused = issue(&bundle, &members).expect("a launch that is refused has issued nothing");
    assert_eq!((refused.count, refused.refused.is_none(), bundle.launches()), (2, true, 1));
    let copied = || weft_cuda::copy(&Label::from("copy"), &Region::whole(&y.buffer), &Region::whole(&x.buffer));
    let stream = copied().expect("it is issued").stream().handle();
    machine.driver.hold(stream, true);
    issue_all(&bundle, &members).expect("it is issued behind the copy");
    let fence = copied();
    drop(bundle);
    assert_eq!(machine.driver.holdings().images, before + 2, "it runs");
    machine.driver.hold(stream, false);
    fence.expect("it is issued").wait(&mut Wait::default()).expect("it ends");
    assert!(machine.cuda.shut_down(std::time::Duration::from_secs(20)));
    assert_eq!(machine.driver.holdings().images, before);
    machine.check();
}

/// The members of a diamond with a side branch, and its arrays.
fn diamond(machine: &Machine) -> (Vec<Member>, [Array; 5]) {
    let arrays = [(); 5].map(|()| machine.array(0, WORDS));
    let [x, left, right, out, other] = &arrays;
    machine.fill(x, 1);
    machine.fill(other, 1);
    let members = [
        ("scale", left, x, 2),
        ("scale", right, x, 3),
        ("scale", out, left, 1),
        ("axpy", out, right, 1),
        ("scale", other, other, 5),
        ("axpy", x, out, 1),
    ];
    (members.map(|(kernel, to, from, factor)| launch(machine, kernel, to, from, factor)).into(), arrays)
}

fn push_diamond(machine: &Machine, bundle: &Arc<Bundle>, members: &[Member], arrays: &[Array; 5]) {
    push(machine, bundle, members.to_vec(), &arrays.each_ref());
    machine.engine.wait_for_all().expect("no op fails");
    machine.driver.run_until_idle();
}

#[test]
fn members_that_have_nothing_to_do_with_each_other_run_side_by_side() {
    let _watchdog = Watchdog::new("members of a graph run side by side");
    for (dependencies, levels) in [(true, 4), (false, 6)] {
        let machine = Machine::new(Settings { dependencies, ..Settings::default() }, 2);
        let ((members, arrays), bundle) = (diamond(&machine), bundle(&machine));
        push_diamond(&machine, &bundle, &members, &arrays);
        let before = machine.driver.time();
        push_diamond(&machine, &bundle, &members, &arrays);
        assert_eq!(machine.driver.time() - before, levels * KERNEL);
        assert_eq!(machine.value(&arrays[0]), vec![36 * 0x1_0000_0001; WORDS]);
        assert_eq!(machine.value(&arrays[4]), vec![25 * 0x1_0000_0001; WORDS]);
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
        let ((members, arrays), bundle) = (diamond(&machine), bundle(&machine));
        (0..2).for_each(|_| push_diamond(&machine, &bundle, &members, &arrays));
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
fn what_cannot_be_captured_is_issued_and_stays_apart() {
    let _watchdog = Watchdog::new("what cannot be captured is issued");
    let machine = Machine::new(Settings { devices: 2, ..Settings::default() }, 1);
    let (x, y, far) = (machine.array(0, WORDS), machine.array(0, WORDS), machine.array(1, WORDS));
    machine.fill(&x, 1);
    machine.fill(&y, 0);
    machine.launch("scale", &y, &x, 0);
    machine.engine.wait_for_all().expect("no op fails");
    let before = machine.driver.holdings().images;
    let bundle = Bundle::new(&machine.device(0), Label::from("bundle"));
    let members = [launch(&machine, "axpy", &y, &x, 2), copy(&x, &y)];
    issue_all(&bundle, &members).expect("it is issued");
    // The first launch of the capture.
    machine.driver.order_fault(FaultKind::Launch, 0, 1);
    for _ in 0..3 {
        issue_all(&bundle, &members).expect("it is issued");
    }
    assert_eq!((bundle.launches(), machine.driver.holdings().images), (0, before + 1), "the kernel's module");
    assert_eq!(machine.value(&x), vec![54 * 0x1_0000_0001; WORDS]);
    let other = Bundle::new(&machine.device(0), Label::from("bundle"));
    let issued = issue(&other, &[copy(&far, &far), copy(&x, &y)]).expect("nothing is tried");
    assert_eq!((issued.count, issued.refused.is_none()), (0, true), "another device's");
    machine.check();
}

#[test]
fn a_refused_member_alone_is_refused() {
    let _watchdog = Watchdog::new("a refused member alone is refused");
    let machine = Machine::new(Settings::default(), 1);
    let (x, y, z) = (machine.array(0, WORDS), machine.array(0, WORDS), machine.array(0, WORDS));
    machine.fill(&x, 1);
    machine.fill(&y, 0);
    machine.fill(&z, 0);
    machine.launch("scale", &y, &x, 0);
    machine.engine.wait_for_all().expect("no op fails");
    let bundle = Bundle::new(&machine.device(0), Label::from("bundle"));
    let members = [("axpy", &y, 2), ("axpy", &z, 3), ("axpy", &y, 4)];
    let members = members.map(|(kernel, to, factor)| launch(&machine, kernel, to, &x, factor));
    machine.driver.order_fault(FaultKind::Launch, 1, 1);
    let issued = issue(&bundle, &members).expect("a launch was refused, the device is well");
    assert_eq!(issued.count, 1);
    let error = issued.refused.expect("the second one was refused");
    assert!(error.to_string().contains("axpy"), "{error}");
    members[2].issue().expect("it is issued");
    let values = [&y, &z].map(|array| machine.value(array)[0] / 0x1_0000_0001);
    assert_eq!(values, [6, 0]);
    machine.check();
}
