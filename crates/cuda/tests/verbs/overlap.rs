//! Overlap, in virtual time.

use crate::{KERNEL, Machine, Watchdog};
use weft_cuda::simulated::{Settings, Speeds};
use weft_cuda::{Label, Landing, PinnedBlock, Region};
use weft_engine::{Cause, OpContext};

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
            let ((landing, land), region, (block, start)) = (Landing::new(), Region::whole(&x.buffer), side(&inputs));
            let copy_in = move |context: &mut OpContext<'_>| {
                // SAFETY: the block lives until all has landed.
                let from = unsafe { weft_cuda::HostMemory::new(block.start().add(start), 8000) };
                weft_cuda::copy_in(context, &Label::from("in"), &region, from, landing).map_err(Cause::from)
            };
            machine.engine.op(copy_in).overwrite(&x.variable).read(&host).push().expect("an open engine");
            machine.engine.op(land).read(&host).push().expect("an open engine");
            machine.launch("scale", &y, &x, 2);
            let ((landing, land), region, (block, start)) = (Landing::new(), Region::whole(&y.buffer), side(&outputs));
            let own = machine.engine.new_variable(None);
            let copy_out = move |context: &mut OpContext<'_>| {
                // SAFETY: as above.
                let to = unsafe { weft_cuda::HostMemory::new(block.start().add(start), 8000) };
                weft_cuda::copy_out(context, &Label::from("out"), to, &region, landing).map_err(Cause::from)
            };
            machine.engine.op(copy_out).read(&y.variable).overwrite(&own).push().expect("an open engine");
            machine.engine.op(land).mutate(&own).push().expect("an open engine");
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
