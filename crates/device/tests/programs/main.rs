//! Random programs of launches and copies between the host and two simulated devices, recorded and replayed: what they give
//! serially, with every access on the devices behind those that it conflicts with.

#![allow(clippy::cast_ptr_alignment)] // memory of arrays is aligned to more than eight bytes

#[path = "../../../engine/tests/watchdog/mod.rs"]
mod watchdog;

use proptest::prelude::*;
use std::sync::Arc;
use watchdog::Watchdog;
use weft_array::{Access, Array, Call, DType, Layout, Tag, recording};
use weft_cuda::driver::Dimensions;
use weft_cuda::simulated::{FaultKind, Kernel as Simulated, KernelCall, Settings, SimulatedDriver};
use weft_cuda::{Cuda, Device, Kernel, Label, Launch, Parameter};
use weft_device::{Noted, buffer_of, copy, fresh, launch};
use weft_engine::{AccessKind, Engine, Policy, PushOptions, Wait};
use weft_program::{Argument, Options, Program, Recorded, Settings as Plan};

/// Elements of an array, each of eight bytes.
const WORDS: usize = 16;
/// Calls of each program.
const CALLS: usize = 6;

/// `out[i] = x[i] * 3 + out[i]`.
fn mix(call: &mut KernelCall<'_>) {
    let (out, x, count) = (call.parameter(0), call.parameter(1), call.count(2));
    let (x, before) = (call.read_words(x, count), call.read_words(out, count));
    let after: Vec<u64> = x.iter().zip(before).map(|(x, old)| x.wrapping_mul(3).wrapping_add(old)).collect();
    call.write_words(out, &after);
}

struct Machine {
    driver: SimulatedDriver,
    devices: Vec<Device>,
    kernels: Vec<Kernel>,
    _cuda: Cuda,
}

impl Machine {
    fn new(seed: u64) -> Self {
        let driver = SimulatedDriver::new(Settings { devices: 2, seed, ..Settings::default() });
        driver.add_kernel(Simulated::new("mix", &[8, 8, 4], mix).takes(10_000, 0.25));
        // Chunks of two elements: so that a copy has several.
        let settings = weft_cuda::Settings { chunk: 32, parts: 12, ahead: 0 };
        let cuda = Cuda::with_settings(Arc::new(driver.clone()), settings);
        let devices: Vec<Device> = (0..2).map(|index| cuda.device(index).expect("a device")).collect();
        let kernel = |device: &Device| {
            // SAFETY: the simulated driver takes any image.
            let module = unsafe { device.load_module(b"image") }.expect("a module");
            module.kernel("mix").expect("a kernel")
        };
        let kernels = devices.iter().map(kernel).collect();
        Self { driver, devices, kernels, _cuda: cuda }
    }
}

/// One step over arrays that go by numbers: those of the places 0 to 2 are the arguments.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// Copies elements between any two arrays.
    Copy { to: usize, from: usize, low: usize, high: usize },
    /// Launches, if both are on one device.
    Mix { to: usize, from: usize, low: usize, high: usize },
    /// A new array at this place, and a copy of all of another one.
    Fresh { place: usize, from: usize },
}

fn step() -> impl Strategy<Value = Step> {
    let range = (0..WORDS).prop_flat_map(|low| (Just(low), low + 1..=WORDS));
    prop_oneof![
        4 => (0..6_usize, 0..6_usize, range.clone())
            .prop_map(|(to, from, (low, high))| Step::Copy { to, from, low, high }),
        3 => (0..6_usize, 0..6_usize, range).prop_map(|(to, from, (low, high))| Step::Mix { to, from, low, high }),
        2 => (0..3_usize, 0..6_usize).prop_map(|(place, from)| Step::Fresh { place, from }),
    ]
}

/// The arrays of a run, and where each is: 0 is the host.
struct World<'m> {
    machine: &'m Machine,
    engine: Engine,
    arrays: Vec<(Array, usize)>,
}

fn part(array: &Array, low: usize, high: usize) -> Array {
    let layout = Layout::contiguous(&[high - low], 8).expect("few elements");
    let offset = array.layout().offset + low * 8;
    Array::on(Arc::clone(array.buffer()), Layout { offset, ..layout }, DType::UInt64).expect("inside")
}

impl World<'_> {
    fn made(&self, place: usize) -> Array {
        let made = match place.checked_sub(1) {
            None => Array::empty(&self.engine, &[WORDS], DType::UInt64),
            Some(device) => fresh(&self.engine, &self.machine.devices[device], &[WORDS], DType::UInt64),
        };
        made.expect("a small array")
    }

    fn copy(&self, to: &Array, from: &Array) {
        assert!(copy(&self.engine, to, from, &Noted::default()).is_ok(), "a copy that is taken");
    }

    fn mix(&self, device: usize, to: &Array, from: &Array) {
        let kernel = &self.machine.kernels[device];
        let plan = kernel.plan(&[Parameter::Pointer, Parameter::Pointer, Parameter::Scalar(4)]).expect("a plan");
        let dimensions = Dimensions { grid: [1; 3], block: [64, 1, 1], shared_memory: 0 };
        let count = u32::try_from(to.layout().size()).expect("few elements");
        let access = |array: &Array, kind| weft_cuda::BufferAccess {
            buffer: buffer_of(array).expect("on a device"),
            range: array.range(),
            kind,
        };
        // SAFETY: the kernel does what its arguments say.
        let made = unsafe { Launch::new(kernel, &plan, dimensions, Label::from("mix")) }
            .and_then(|made| made.pointer(to.layout().offset, access(to, AccessKind::Mutate)))
            .and_then(|made| made.pointer(from.layout().offset, access(from, AccessKind::Read)))
            .and_then(|made| made.scalar(&count.to_ne_bytes()))
            .expect("fitting arguments");
        let arrays = [(to, Access::Mutate), (from, Access::Read)];
        // SAFETY: it was made for these arrays.
        unsafe { launch(made, &Call::anywhere(&self.engine, &arrays, PushOptions::default()), true) }
            .expect("a launch");
    }

    fn run(&mut self, steps: &[Step]) {
        for step in steps {
            let count = self.arrays.len();
            match *step {
                Step::Copy { to, from, low, high } | Step::Mix { to, from, low, high } => {
                    let ((to, place), (from, other)) = (&self.arrays[to % count], &self.arrays[from % count]);
                    if Arc::ptr_eq(to.buffer(), from.buffer()) || *place + *other == 0 {
                        continue;
                    }
                    let (to, from) = (part(to, low, high), part(from, low, high));
                    match step {
                        Step::Mix { .. } if place == other => self.mix(place - 1, &to, &from),
                        _ => self.copy(&to, &from),
                    }
                }
                Step::Fresh { place, from } => {
                    let (from, other) = self.arrays[from % count].clone();
                    if place + other > 0 {
                        let made = self.made(place);
                        self.copy(&made, &from);
                        self.arrays.push((made, place));
                    }
                }
            }
        }
    }

    /// The elements of an array.
    fn values(&self, array: &(Array, usize)) -> Vec<u64> {
        self.outcome(array).expect("no failure")
    }

    /// The same, or why there are none.
    fn outcome(&self, (array, place): &(Array, usize)) -> Result<Vec<u64>, String> {
        let host = if *place == 0 { array.clone() } else { self.made(0) };
        if *place > 0 {
            self.copy(&host, array);
        }
        host.wait_to_read(&mut Wait::default()).map_err(|error| error.to_string())?;
        let start = host.buffer().start().expect("memory").cast::<u64>();
        // SAFETY: the array was waited for, and nothing is pushed on it meanwhile.
        Ok((0..WORDS).map(|at| unsafe { start.add(at).read() }).collect())
    }

    /// Lets what an array holds fail.
    fn spoil(&self, array: &Array) {
        let failing = [(array, Access::Mutate)];
        let call = Call::anywhere(&self.engine, &failing, PushOptions::default());
        let fail = |_: &mut weft_engine::OpContext<'_>| Err(weft_engine::Cause::Panic("no".to_owned()));
        weft_array::push(fail, &call).expect("an open engine");
    }

    /// What a call gives: results, the last array first.
    fn call(&self, program: &Program) -> Vec<(Array, usize)> {
        let arguments: Vec<&Array> = self.arrays.iter().map(|(array, _)| array).collect();
        let outputs = program.run(&arguments, &Options::default()).expect("a call");
        let array = |output| match output {
            weft_program::Output::Array(array) => Some((array.clone(), usize::from(buffer_of(&array).is_some()))),
            _ => None,
        };
        outputs.into_iter().filter_map(array).collect()
    }
}

/// An array for each place, with numbers in it.
fn world(machine: &Machine, workers: usize) -> World<'_> {
    let policy = if workers == 0 { Policy::Serial } else { Policy::WorkStealing };
    let settings = weft_engine::Settings { workers: Some(workers.max(1)), policy, ..weft_engine::Settings::default() };
    let engine = Engine::new(settings).expect("an engine");
    let mut world = World { machine, engine, arrays: Vec::new() };
    for place in 0..3 {
        let host = world.made(0);
        let start = host.buffer().start().expect("memory").cast::<u64>();
        for at in 0..WORDS {
            // SAFETY: nobody else knows the array.
            unsafe { start.add(at).write((place * 100 + at) as u64) };
        }
        if place > 0 {
            let made = world.made(place);
            world.copy(&made, &host);
            world.arrays.push((made, place));
        } else {
            world.arrays.push((host, place));
        }
    }
    world
}

/// The steps as a program of the world's three arrays, whose results are the last arrays, so many at most.
fn recorded(world: &World<'_>, steps: &[Step], shown: usize, plan: Plan) -> Program {
    let tag = Tag::new("random");
    recording::begin(Arc::clone(&tag), &world.engine).expect("no other recording");
    let stands = |(array, place): &(Array, usize)| {
        let buffer = array.buffer().standing_in(false, Arc::clone(&tag));
        (Array::on(buffer, array.layout().clone(), array.dtype()).expect("as large"), *place)
    };
    let placeholders: Vec<(Array, usize)> = world.arrays.iter().map(stands).collect();
    let arguments = placeholders
        .iter()
        .zip(&world.arrays)
        .map(|((placeholder, _), (array, _))| Argument { placeholder: placeholder.clone(), array: array.clone() });
    let arguments = arguments.collect();
    let mut inside = World { machine: world.machine, engine: world.engine.clone(), arrays: placeholders };
    inside.run(steps);
    let transcript = recording::end().expect("what was recorded");
    let results: Vec<Array> = inside.arrays[3..].iter().rev().take(shown).map(|(array, _)| array.clone()).collect();
    let recorded = Recorded::new(*transcript, arguments, &results).expect("a recording");
    Program::new(recorded, plan).expect("a plan")
}

/// All passes, or all but one.
fn passes(but: &str) -> Plan {
    let all = ["dead", "common", "follow", "layout", "early", "fuse", "graphs"].into_iter().filter(|pass| *pass != but);
    let all: Vec<String> = all.map(str::to_owned).collect();
    Plan::new(false, "balanced", Some(&all)).expect("known passes")
}

fn check(seed: u64, workers: usize, but: &str, steps: &[Step]) {
    let _watchdog = Watchdog::new("replays of random programs");
    let machine = Machine::new(seed);
    let mut eager = world(&machine, 0);
    let replayed = world(&machine, workers);
    let program = recorded(&replayed, steps, usize::MAX, passes(but));
    let arguments: Vec<&Array> = replayed.arrays.iter().map(|(array, _)| array).collect();
    for _ in 0..CALLS {
        eager.arrays.truncate(3);
        eager.run(steps);
        // Nothing is waited for in between.
        program.run(&arguments, &Options::default()).expect("a call");
    }
    for (one, other) in replayed.arrays.iter().zip(&eager.arrays) {
        assert_eq!(replayed.values(one), eager.values(other));
    }
    assert!(replayed.engine.wait_for_all().is_ok());
    drop((program, eager, replayed));
    machine.driver.run_until_idle();
    assert_eq!(machine.driver.take_hazards(), Vec::<String>::new());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn replays_give_what_eager_ops_give(
        seed in any::<u64>(),
        workers in 1..4_usize,
        apart in prop::bool::weighted(0.2),
        steps in prop::collection::vec(step(), 1..24),
    ) {
        check(seed, workers, if apart { "graphs" } else { "" }, &steps);
    }
}

/// Mixes among the arrays of the first device: `count` of them, each behind the one before.
fn chain(count: usize) -> Vec<Step> {
    let mix = |at: usize| Step::Mix { to: 3 + at, from: if at == 0 { 1 } else { 2 + at }, low: 0, high: WORDS };
    let fresh = (0..count).map(|_| Step::Fresh { place: 1, from: 1 });
    fresh.chain((0..count).map(mix)).chain([Step::Mix { to: 1, from: 2 + count, low: 0, high: WORDS }]).collect()
}

/// What calls of a program of such a chain, settled one by one, ask of the driver from then on: launches of kernels, copies,
/// launches of graphs, fences.
fn asked(but: &str, workers: usize) -> [u64; 4] {
    const WARM: usize = 12;
    const COUNTED: u64 = 10;
    let machine = Machine::new(5);
    let world = world(&machine, workers);
    let program = recorded(&world, &chain(10), 1, passes(but));
    let arguments: Vec<&Array> = world.arrays.iter().map(|(array, _)| array).collect();
    let call = || {
        drop(program.run(&arguments, &Options::default()).expect("a call"));
        world.engine.wait_for_all().expect("no op fails");
        world.values(&world.arrays[1])
    };
    (0..WARM).for_each(|_| drop(call()));
    let names = ["cuLaunchKernel", "cuMemcpyDtoDAsync", "cuGraphLaunch", "cuEventRecord"];
    let before = names.map(|name| machine.driver.calls(name));
    (0..COUNTED).for_each(|_| drop(call()));
    let mut counts = [0; 4];
    for ((count, name), before) in counts.iter_mut().zip(names).zip(before) {
        *count = (machine.driver.calls(name) - before) / COUNTED;
    }
    counts
}

#[test]
fn neighbours_are_one_launch_of_a_graph() {
    let _watchdog = Watchdog::new("neighbours are one launch of a graph");
    let [kernels, copies, graphs, fences] = asked("graphs", 2);
    assert_eq!((kernels, copies, graphs), (11, 10, 0));
    // Four are for the chunks of the copy that looks at the result. Small copies have theirs in common with what comes next.
    assert!(fences >= 11 + 4, "{fences}");
    let [kernels, copies, graphs, fences] = asked("", 2);
    assert_eq!((kernels, copies, graphs), (0, 0, 1));
    // One behind the arena's allocation, one behind the graph.
    assert!(fences <= 2 + 4, "{fences}");
}

#[test]
fn addresses_that_always_change_leave_the_members_apart() {
    let _watchdog = Watchdog::new("addresses that always change");
    let machine = Machine::new(7);
    let world = world(&machine, 2);
    let program = recorded(&world, &chain(3), 1, passes(""));
    let (device, given) = (&machine.devices[0], |array| (array, 1));
    let mut kept = Vec::new();
    for _ in 0..80 {
        // Nobody gives one back, so each lies somewhere else.
        let made = fresh(&world.engine, device, &[WORDS], DType::UInt64).expect("a small array");
        world.copy(&made, &world.arrays[1].0);
        let (host, far) = (&world.arrays[0].0, &world.arrays[2].0);
        drop(program.run(&[host, &made, far], &Options::default()).expect("a call"));
        kept.push(given(made));
    }
    world.engine.wait_for_all().expect("no op fails");
    assert!(kept.iter().all(|array| world.values(array) == world.values(&kept[0])));
    assert_eq!(machine.driver.calls("cuGraphLaunch"), 0);
    machine.driver.run_until_idle();
    assert_eq!(machine.driver.take_hazards(), Vec::<String>::new());
}

#[test]
fn what_was_skipped_is_not_issued_and_the_others_are() {
    let _watchdog = Watchdog::new("what was skipped is not issued");
    let machine = Machine::new(9);
    let world = world(&machine, 2);
    // Two chains side by side, and one op that joins them.
    let mix = |to, from| Step::Mix { to, from, low: 0, high: WORDS };
    let fresh = Step::Fresh { place: 1, from: 1 };
    let steps = [fresh, fresh, mix(3, 1), mix(4, 1), mix(4, 3)];
    let program = recorded(&world, &steps, usize::MAX, passes("dead"));
    let arguments: Vec<&Array> = world.arrays.iter().map(|(array, _)| array).collect();
    for _ in 0..4 {
        drop(program.run(&arguments, &Options::default()).expect("a call"));
    }
    world.spoil(&world.arrays[1].0);
    let results = program.run(&arguments, &Options::default()).expect("a call");
    assert!(world.engine.wait_for_all().is_err());
    for result in results {
        let weft_program::Output::Array(result) = result else { continue };
        assert!(result.wait_to_read(&mut Wait::default()).is_err());
    }
    // What is as good as new is so again.
    world.copy(&world.arrays[1].0, &world.arrays[0].0);
    drop(program.run(&arguments, &Options::default()).expect("a call"));
    assert!(world.engine.wait_for_all().is_ok());
    drop((program, world));
    machine.driver.run_until_idle();
    assert_eq!(machine.driver.take_hazards(), Vec::<String>::new());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_failed_input_fails_together_what_it_fails_apart(
        seed in any::<u64>(),
        spoiled in 0..3_usize,
        steps in prop::collection::vec(step(), 1..24),
    ) {
        let _watchdog = Watchdog::new("a failed input");
        let run = |but: &str| {
            let machine = Machine::new(seed);
            let world = world(&machine, 2);
            let program = recorded(&world, &steps, usize::MAX, passes(but));
            (0..3).for_each(|_| drop(world.call(&program)));
            world.spoil(&world.arrays[spoiled].0);
            let results = world.call(&program);
            let failed: Vec<bool> = world.arrays.iter().chain(&results).map(|array| world.outcome(array).is_err()).collect();
            let _ = world.engine.wait_for_all();
            drop((program, results, world));
            machine.driver.run_until_idle();
            assert_eq!(machine.driver.take_hazards(), Vec::<String>::new());
            failed
        };
        assert_eq!(run(""), run("graphs"));
    }
}

#[test]
fn what_the_driver_refuses_fails_alone() {
    let _watchdog = Watchdog::new("what the driver refuses fails alone");
    let mix = |to, from| Step::Mix { to, from, low: 0, high: WORDS };
    let fresh = |from| Step::Fresh { place: 1, from };
    // What the second launch fills is in the result, and not in what becomes of the argument.
    let steps = [fresh(1), fresh(1), mix(3, 1), mix(4, 1), fresh(4), mix(1, 3)];
    for (warm, faults, graphs, lost) in [
        // Its addresses are new: one op after the other.
        (0, &[(FaultKind::Launch, 1)][..], 0, true),
        (0, &[(FaultKind::Copy, 2)], 0, false),
        // Nobody gets memory; then each op asks for its own.
        (0, &[(FaultKind::Allocation, 0)], 0, false),
        // They lie where they have lain: the launch of the graph, and of a kernel of it.
        (12, &[(FaultKind::Launch, 0)], 1, false),
        (12, &[(FaultKind::Launch, 0), (FaultKind::Launch, 2)], 1, true),
    ] {
        let machine = Machine::new(3);
        let world = world(&machine, 2);
        let program = recorded(&world, &steps, 1, passes("dead"));
        let settled = || {
            let results = world.call(&program);
            let outcomes: Vec<_> =
                results.iter().chain(&world.arrays[1..2]).map(|array| world.outcome(array)).collect();
            let _ = world.engine.wait_for_all();
            outcomes
        };
        world.engine.wait_for_all().expect("no op fails");
        (0..warm).for_each(|_| {
            // Whose memory is free when the next call asks for some.
            drop(world.call(&program));
            drop(world.outcome(&world.arrays[1]));
        });
        let before = machine.driver.calls("cuGraphLaunch");
        for (kind, nth) in faults {
            machine.driver.order_fault(*kind, *nth, 2);
        }
        let outcomes = settled();
        assert_eq!(machine.driver.calls("cuGraphLaunch") - before, graphs, "{faults:?}");
        let failed: Vec<bool> = outcomes.iter().map(Result::is_err).collect();
        let copy = faults[0].0 == FaultKind::Copy;
        assert_eq!(failed, [lost || copy, false], "{faults:?}: {outcomes:?}");
        if lost {
            let error = outcomes[0].as_ref().expect_err("it failed");
            assert!(error.contains("mix") && error.contains("cuLaunchKernel"), "{error}");
        }
        assert!(settled().iter().all(Result::is_ok), "{faults:?}");
        drop((program, world));
        machine.driver.run_until_idle();
        assert_eq!(machine.driver.take_hazards(), Vec::<String>::new());
    }
}
