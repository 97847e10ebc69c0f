//! Overlap, in virtual time.

use crate::{KERNEL, Machine, Watchdog};
use weft_cuda::simulated::{Settings, Speeds};
use weft_cuda::{Label, Landing, PinnedBlock, Region};
use weft_engine::{AccessKind, Cause, OpContext};

const CHUNKS: usize = 40;

/// Copy in, kernel, copy out over chunks of pinned memory, written serially: the longest of the three is what it takes.
#[test]
fn a_pipeline_takes_as_long_as_its_longest_part() {
    let _watchdog = Watchdog::new("a pipeline takes as long as its longest part");
    // A chunk of 8,000 bytes takes 8 us on the link, and then 1.6 us; kernels run four at a time.
    for (link, longest) in [(1000, 8000), (5000, KERNEL / 4)] {
        let speeds = Speeds { link, ..Speeds::default() };
        let machine = Machine::new(Settings { speeds, ..Settings::default() }, 2);
        let device = machine.device(0);
        let (inputs, outputs) =
            (device.pinned(CHUNKS * 8000).expect("memory"), device.pinned(CHUNKS * 8000).expect("memory"));
        let (inputs, outputs) = (std::sync::Arc::new(inputs), std::sync::Arc::new(outputs));
        let host = machine.engine.new_variable(Some("host"));
        for chunk in 0..CHUNKS {
            let (x, y) = (machine.array(0, 1000), machine.array(0, 1000));
            let side = |block: &std::sync::Arc<PinnedBlock>| (std::sync::Arc::clone(block), chunk * 8000);
            let ((landing, land), region, (block, start)) =
                (Landing::new(&device), Region::whole(&x.buffer), side(&inputs));
            let copy_in = move |context: &mut OpContext<'_>| {
                // SAFETY: the block lives until all has landed.
                let from = unsafe { weft_cuda::HostMemory::new(block.start().add(start), 8000) };
                weft_cuda::copy_in(context, &Label::from("in"), &region, from, landing).map_err(Cause::from)
            };
            machine
                .engine
                .op_of(device.issuing(copy_in))
                .overwrite(&x.variable)
                .read(&host)
                .push()
                .expect("an open engine");
            machine.engine.op_of(land).read(&host).push().expect("an open engine");
            machine.launch("scale", &y, &x, 2);
            let ((landing, land), region, (block, start)) =
                (Landing::new(&device), Region::whole(&y.buffer), side(&outputs));
            let own = machine.engine.new_variable(None);
            let copy_out = move |context: &mut OpContext<'_>| {
                // SAFETY: as above.
                let to = unsafe { weft_cuda::HostMemory::new(block.start().add(start), 8000) };
                weft_cuda::copy_out(context, &Label::from("out"), to, &region, landing).map_err(Cause::from)
            };
            machine
                .engine
                .op_of(device.issuing(copy_out))
                .read(&y.variable)
                .overwrite(&own)
                .push()
                .expect("an open engine");
            machine.engine.op_of(land).mutate(&own).push().expect("an open engine");
        }
        machine.engine.wait_for_all().expect("no op fails");
        machine.driver.run_until_idle();
        let (time, least) = (machine.driver.time(), longest * CHUNKS as u64);
        // The first chunk's way in, and the last one's through the kernel and out.
        let ends = 2 * 8000 * 1000 / link + KERNEL;
        assert!(time >= least && time <= least * 105 / 100 + ends, "{time} ns instead of {least} ns");
        machine.check();
    }
}

/// The same over slices of two arrays: a chunk waits for what is done to itself, and not for the others.
#[test]
fn a_pipeline_over_slices_takes_as_long_as_its_longest_part() {
    let _watchdog = Watchdog::new("a pipeline over slices takes as long as its longest part");
    for (link, longest) in [(1000, 8000), (5000, KERNEL / 4)] {
        let speeds = Speeds { link, ..Speeds::default() };
        let parts = weft_cuda::Settings::default().parts;
        let machine = Machine::with_parts(Settings { speeds, ..Settings::default() }, 2, parts);
        let pinned = || std::sync::Arc::new(machine.device(0).pinned(CHUNKS * 8000).expect("memory"));
        let ((inputs, outputs), host) = ((pinned(), pinned()), machine.engine.new_variable(None));
        let (d, e) = (machine.sliced(0, CHUNKS * 1000, CHUNKS), machine.sliced(0, CHUNKS * 1000, CHUNKS));
        for chunk in 0..CHUNKS {
            let (at, words) = (chunk * 1000, chunk * 1000..(chunk + 1) * 1000);
            let (x, y, own) = (d.slice(words.clone()), e.slice(words), machine.engine.new_variable(None));
            machine.copy_pinned_slice(&x, (&inputs, at), AccessKind::Mutate, Some(&host));
            machine.launch_slice("scale", &y, &x, 2);
            machine.copy_pinned_slice(&y, (&outputs, at), AccessKind::Read, Some(&own));
        }
        machine.engine.wait_for_all().expect("no op fails");
        machine.driver.run_until_idle();
        let (time, least) = (machine.driver.time(), longest * CHUNKS as u64);
        let ends = 2 * 8000 * 1000 / link + KERNEL;
        assert!(time >= least && time <= least * 105 / 100 + ends, "{time} ns instead of {least} ns");
        machine.check();
    }
}

/// Copies from and to pageable memory, of slices beside one that a kernel has, end while that runs.
#[test]
fn staged_copies_of_other_slices_do_not_wait_for_a_kernel() {
    let _watchdog = Watchdog::new("staged copies of other slices do not wait for a kernel");
    let machine = Machine::new(Settings::default(), 2);
    let x = machine.sliced(0, 4 * 3000, 4);
    let slice = |at: usize| x.slice(at * 3000..(at + 1) * 3000);
    (0..4).for_each(|at| machine.copy_in_slice(&slice(at), vec![at as u64; 3000]));
    machine.engine.wait_for_all().expect("no op fails");
    machine.launch_slice("axpy", &slice(0), &slice(0), 1);
    machine.engine.wait_for_all().expect("no op fails");
    let kernel = x.buffer.fences_before(&(0..8), AccessKind::Read)[0].stream().handle();
    machine.driver.hold(kernel, true);
    machine.launch_slice("axpy", &slice(0), &slice(0), 1);
    machine.copy_in_slice(&slice(1), vec![7; 3000]);
    let other = machine.copy_out_slice(&slice(1));
    assert_eq!(machine.read(&other), vec![7; 3000]);
    let own = machine.copy_out_slice(&slice(0));
    assert!(!own.variable.is_ready(), "it is behind the kernel");
    machine.driver.hold(kernel, false);
    assert_eq!(machine.read(&own), vec![0; 3000]);
    machine.check();
}

/// Kernels that each fill a quarter of the device run side by side.
#[test]
fn independent_kernels_share_the_device() {
    let _watchdog = Watchdog::new("independent kernels share the device");
    let machine = Machine::new(Settings::default(), 2);
    let x = machine.array(0, 10);
    machine.fill(&x, 1);
    machine.engine.wait_for_all().expect("no op fails");
    let chains: Vec<_> = (0..4).map(|_| machine.array(0, 10)).collect();
    for chain in &chains {
        machine.launch("scale", chain, &x, 1);
    }
    for _ in 0..24 {
        for chain in &chains {
            machine.launch("axpy", chain, &x, 1);
        }
    }
    machine.engine.wait_for_all().expect("no op fails");
    machine.driver.run_until_idle();
    let time = machine.driver.time();
    assert!(time <= 25 * KERNEL * 105 / 100, "100 kernels, four at a time, took {time} ns");
    machine.check();
}
