//! Foreign code: streams, memory and kernels that somebody else made, and calls that issue by themselves.

use crate::{Array, Machine, WORDS, Watchdog};
use std::sync::{Arc, Mutex, mpsc};
use weft_cuda::driver::{Memory, Pattern};
use weft_cuda::simulated::Settings;
use weft_cuda::{BufferAccess, CudaError, DeviceBuffer, Fence, Label, Request};
use weft_engine::{Cause, OpContext};

/// Pushes what stands for a callable that issues on the stream it is given.
fn call(machine: &Machine, out: &Array, value: u8) {
    let (buffer, driver) = (Arc::clone(&out.buffer), machine.driver.clone());
    let op = move |_: &mut OpContext<'_>| {
        let (label, accesses) = (Label::from("call"), [BufferAccess::mutate(&buffer)]);
        let begun = buffer.device().begin(&Request::new(&label, &accesses)).map_err(Cause::from)?;
        let stream = begun.stream().handle();
        // SAFETY: the op was granted the buffer, and the stream is behind all who used it.
        unsafe { driver.fill(begun.addresses()[0], Pattern::Byte(value), buffer.bytes(), stream) }
            .expect("it is issued");
        begun.finish().map(drop).map_err(Cause::from)
    };
    machine.engine.op_of(op).name("call").mutate(&out.variable).push().expect("an open engine");
}

#[test]
fn a_callable_issues_on_the_stream_it_is_given() {
    let _watchdog = Watchdog::new("a callable issues on the stream it is given");
    for seed in 0..50 {
        let machine = Machine::new(Settings { seed, ..Settings::default() }, 2);
        let (x, out) = (machine.array(0, WORDS), machine.array(0, WORDS));
        machine.fill(&x, 2);
        machine.launch("scale", &out, &x, 1);
        call(&machine, &x, 1);
        machine.launch("axpy", &out, &x, 1);
        call(&machine, &x, 9);
        assert_eq!(machine.value(&out), vec![0x0101_0101_0101_0101 + 0x2_0000_0002; WORDS]);
        machine.check();
    }
}

/// What a callable issued before it gave up may still run: what comes next waits for it.
#[test]
fn what_was_begun_is_followed_by_a_fence() {
    let _watchdog = Watchdog::new("what was begun is followed by a fence");
    let machine = Machine::new(Settings::default(), 1);
    let x = machine.array(0, WORDS);
    let (label, accesses) = (Label::from("gives up"), [BufferAccess::overwrite(&x.buffer)]);
    let device = machine.device(0);
    let begun = device.begin(&Request::new(&label, &accesses)).expect("it begins");
    let (stream, address) = (begun.stream().handle(), begun.addresses()[0]);
    // SAFETY: nobody else uses the buffer.
    unsafe { machine.driver.fill(address, Pattern::Byte(1), WORDS * 8, stream) }.expect("it is issued");
    drop(begun);
    assert_eq!(x.buffer.writer().expect("there is a fence").label(), label);
    machine.fill(&x, 3);
    assert_eq!(machine.value(&x), vec![0x3_0000_0003; WORDS]);
    machine.check();
}

#[test]
fn the_callers_context_comes_back() {
    let machine = Machine::new(Settings { devices: 2, ..Settings::default() }, 1);
    let (x, y) = (machine.array(0, WORDS), machine.array(1, WORDS));
    let fill = |array: &Array| {
        let region = weft_cuda::Region::whole(&array.buffer);
        weft_cuda::fill(&Label::from("fill"), &region, Pattern::Byte(0)).expect("it is issued");
    };
    let current = || weft_cuda::driver::Devices::current_context(&machine.driver).expect("it answers");
    fill(&x);
    let first = current();
    fill(&y);
    assert_eq!(current(), first);
    machine.driver.run_until_idle();
}

/// Who has lent memory uses it again as soon as it is let go of.
#[test]
fn foreign_memory_is_kept_until_the_device_has_done_with_it() {
    struct Keeper(Arc<Mutex<Option<Fence>>>, mpsc::Sender<bool>);
    impl Drop for Keeper {
        fn drop(&mut self) {
            let used = self.0.lock().expect("nobody panics").take().expect("it was used");
            self.1.send(used.is_done().expect("no fault")).expect("somebody listens");
        }
    }
    let _watchdog = Watchdog::new("foreign memory is kept until the device has done with it");
    for seed in 0..20 {
        let machine = Machine::new(Settings { seed, ..Settings::default() }, 1);
        let (device, used) = (machine.device(0), Arc::default());
        let (x, (tell, told)) = (machine.array(0, WORDS), mpsc::channel());
        machine.fill(&x, 1);
        machine.engine.wait_for_all().expect("no op fails");
        let (label, accesses) = (Label::from("lend"), [BufferAccess::read(&x.buffer)]);
        let begun = device.begin(&Request::new(&label, &accesses)).expect("it begins");
        let address = begun.addresses()[0];
        let ready = begun.finish().expect("a fence");
        let keeper = Box::new(Keeper(Arc::clone(&used), tell));
        // SAFETY: the memory is that of `x`, which lives longer.
        let lent = unsafe { DeviceBuffer::foreign(&device, address, WORDS * 8, Some(ready), keeper) };
        let filled = weft_cuda::fill(&label, &weft_cuda::Region::whole(&lent), Pattern::Byte(2));
        *used.lock().expect("nobody panics") = Some(filled.expect("it is issued"));
        drop(lent);
        assert!(told.recv().expect("it is let go of"));
    }
}

/// Memory of somebody else's, which is ready when work on somebody else's stream has ended.
#[test]
fn foreign_memory_is_used_behind_its_producer() {
    let _watchdog = Watchdog::new("foreign memory is used behind its producer");
    for seed in 0..50 {
        let machine = Machine::new(Settings { seed, ..Settings::default() }, 1);
        let device = machine.device(0);
        let theirs = device.new_stream().expect("a stream");
        // SAFETY: the stream is of this device, and is kept by the keeper.
        let adopted = unsafe { device.adopt_stream(theirs.handle(), Box::new(theirs.clone())) };
        let keeper = Arc::new(());
        let out = machine.array(0, WORDS);
        let start = adopted.fence(&Label::from("start")).expect("a fence");
        drop(start);
        // SAFETY: the simulated driver checks what it is given.
        let address = unsafe {
            let context = weft_cuda::driver::Devices::retain_context(&machine.driver, 0).expect("a context");
            weft_cuda::driver::Devices::set_current_context(&machine.driver, context).expect("it is current");
            let pool = machine.driver.create_pool(0, 0).expect("a pool");
            let address = machine.driver.allocate(WORDS * 8, pool, theirs.handle()).expect("memory");
            machine.driver.fill(address, Pattern::Word(4), WORDS * 2, theirs.handle()).expect("it is issued");
            address
        };
        let produced = Label::from("produced");
        // SAFETY: the stream is of this device.
        let behind = || unsafe { device.fence_behind(theirs.handle(), &produced) };
        let ready = if seed % 2 == 0 { adopted.fence(&produced) } else { behind() }.expect("a fence");
        // SAFETY: the memory is kept until the end of the test.
        let buffer =
            unsafe { DeviceBuffer::foreign(&device, address, WORDS * 8, Some(ready), Box::new(Arc::clone(&keeper))) };
        let x = Array { buffer, variable: machine.engine.new_variable(None) };
        machine.launch("scale", &out, &x, 2);
        // A consumer on their stream: it comes behind the writer, and the host does not wait.
        let (label, accesses) = (Label::from("export"), [BufferAccess::read(&out.buffer)]);
        machine.engine.wait_for_all().expect("no op fails");
        let request = Request { stream: Some(&adopted), ..Request::new(&label, &accesses) };
        let exported = device.begin(&request).expect("it begins");
        assert_eq!(exported.stream().number(), adopted.number());
        exported.finish().expect("a fence");
        assert_eq!(machine.value(&out), vec![0x8_0000_0008; WORDS]);
        drop(x);
        machine.engine.wait_for_all().expect("no op fails");
        machine.check();
    }
}

#[test]
fn regions_are_checked() {
    let machine = Machine::new(Settings::default(), 1);
    let (x, y) = (machine.array(0, WORDS), machine.array(0, 1));
    let region = |start, bytes| weft_cuda::Region::new(&x.buffer, start, bytes);
    let told = region(8, WORDS * 8).expect_err("too long").to_string();
    assert_eq!(told, "512 bytes from byte 8 on are not all in a buffer of 512 bytes");
    assert!(region(usize::MAX, 2).is_err() && region(512, 0).is_ok());
    let label = Label::from("copy");
    let told = weft_cuda::copy(&label, &weft_cuda::Region::whole(&y.buffer), &region(0, 16).expect("a region"));
    assert_eq!(told.expect_err("too long").to_string(), "16 bytes cannot be copied to 8 bytes");
    let told = weft_cuda::fill(&label, &region(2, 6).expect("a region"), Pattern::Word(0)).expect_err("no multiple");
    assert_eq!(told.to_string(), "6 bytes from byte 2 on cannot be filled with patterns of 4 bytes");
    assert!(matches!(told, CudaError::InvalidArgument(_)));
}
