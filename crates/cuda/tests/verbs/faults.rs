//! Refusals and faults: the op that caused one is named, what depends on it fails, the rest goes on, nothing hangs.

use crate::{Machine, WORDS, Watchdog};
use std::time::Duration;
use weft_cuda::simulated::{FaultKind, Settings};
use weft_cuda::{CudaError, DriverError};
use weft_engine::Wait;

fn soon() -> Wait<'static> {
    Wait { timeout: Some(Duration::from_secs(20)), ..Wait::default() }
}

#[test]
fn a_refused_launch_fails_its_op_alone() {
    let _watchdog = Watchdog::new("a refused launch fails its op alone");
    let machine = Machine::new(Settings::default(), 1);
    let (x, out, other) = (machine.array(0, WORDS), machine.array(0, WORDS), machine.array(0, WORDS));
    machine.fill(&x, 1);
    machine.engine.wait_for_all().expect("no op fails");
    machine.driver.order_fault(FaultKind::Launch, 0, 701);
    machine.launch("scale", &out, &x, 6);
    machine.launch("axpy", &out, &x, 6);
    let error = machine.failure(&out.variable);
    let message = "op 'scale' (#6): cuLaunchKernel answered CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES (701)";
    assert_eq!(error.to_string(), message);
    machine.launch("scale", &other, &x, 2);
    assert_eq!(machine.value(&other), vec![0x2_0000_0002; WORDS]);
    machine.launch("scale", &out, &x, 3);
    assert_eq!(machine.value(&out), vec![0x3_0000_0003; WORDS], "an overwrite clears the failure");
    machine.check();
}

#[test]
fn a_refused_copy_fails_both_of_its_ops() {
    let _watchdog = Watchdog::new("a refused copy fails both of its ops");
    for nth in 0..6 {
        let machine = Machine::new(Settings { seed: nth, ..Settings::default() }, 1);
        // Six chunks; any of them may be refused.
        let (x, host) = (machine.array(0, 2600), machine.host(vec![0; 2600]));
        machine.fill(&x, 1);
        machine.engine.wait_for_all().expect("no op fails");
        machine.driver.order_fault(FaultKind::Copy, nth, 1);
        machine.copy_out(&host, &x);
        let error = machine.failure(&host.variable).to_string();
        // The wait before it has a number where it had to wait.
        assert!(error.starts_with("op 'copy out' (#"), "{error}");
        assert!(error.ends_with("): cuMemcpyDtoHAsync answered CUDA_ERROR_INVALID_VALUE (1)"), "{error}");
        machine.copy_out(&host, &x);
        assert_eq!(machine.read(&host), vec![0x1_0000_0001; 2600]);
        machine.driver.order_fault(FaultKind::Copy, nth, 1);
        machine.copy_in(&x, &host);
        assert!(matches!(machine.failure(&x.variable), CudaError::Refused { .. }));
        machine.copy_in(&x, &host);
        assert_eq!(machine.value(&x), vec![0x1_0000_0001; 2600]);
        machine.check();
    }
}

/// A copy that fails half way has the host's memory until the half that was issued has come in.
#[test]
fn a_copy_that_fails_half_way_waits_for_its_first_half() {
    let _watchdog = Watchdog::new("a copy that fails half way waits for its first half");
    let machine = Machine::new(Settings::default(), 1);
    let (x, host) = (machine.array(0, 2000), machine.host(vec![0; 2000]));
    machine.fill(&x, 1);
    machine.copy_out(&host, &x);
    machine.read(&host);
    let stream = x.buffer.fences().last().expect("it was read").stream().handle();
    machine.driver.hold(stream, true);
    machine.driver.order_fault(FaultKind::Copy, 2, 1);
    machine.copy_out(&host, &x);
    machine.add(&host, 1);
    let short = Some(Duration::from_millis(50));
    let waited = machine.engine.wait_for_var_with(&host.variable, &mut Wait { timeout: short, ..Wait::default() });
    assert!(matches!(waited, Err(weft_engine::EngineError::Timeout { .. })), "two chunks are under way");
    machine.driver.hold(stream, false);
    assert!(matches!(machine.failure(&host.variable), CudaError::Refused { .. }));
    machine.check();
}

#[test]
fn a_fault_is_put_down_to_the_first_unfinished_op() {
    let _watchdog = Watchdog::new("a fault is put down to the first unfinished op");
    let machine = Machine::new(Settings { devices: 2, ..Settings::default() }, 1);
    let (x, out, there) = (machine.array(0, WORDS), machine.array(0, WORDS), machine.array(1, WORDS));
    machine.fill(&x, 1);
    machine.launch("scale", &out, &x, 1);
    machine.engine.wait_for_all().expect("no op fails");
    out.buffer.writer().expect("it was issued").wait(&mut soon()).expect("it ends");
    machine.driver.order_fault(FaultKind::Kernel, 1, 700);
    for number in 2..6 {
        machine.launch("axpy", &out, &x, number);
    }
    machine.engine.wait_for_all().expect("all are issued");
    let fence = out.buffer.writer().expect("it was issued");
    let fault = fence.wait(&mut soon()).expect_err("the device is lost");
    let message = fault.to_string();
    assert_eq!(
        message,
        "op 'axpy' (#2) (or op 'axpy' (#3) behind it, or op 'axpy' (#4) behind it, or op 'axpy' (#5) behind it) failed on \
         cuda:0: cuEventQuery answered CUDA_ERROR_ILLEGAL_ADDRESS (700); nothing in this process can use the device any \
         more, other libraries included"
    );
    let CudaError::Fault { error, .. } = &fault else { panic!("{fault}") };
    assert_eq!(error, &DriverError { call: "cuEventQuery", code: 700, name: "CUDA_ERROR_ILLEGAL_ADDRESS" });
    // Whatever comes to this device fails at once and says the same.
    let late = machine.array(0, WORDS);
    machine.fill(&late, 1);
    assert_eq!(machine.failure(&late.variable).to_string(), message);
    assert_eq!(machine.device(0).fault().expect("it is lost").to_string(), message);
    // What was seen to end has ended, and the other device works.
    machine.fill(&there, 4);
    assert_eq!(machine.value(&there), vec![0x4_0000_0004; WORDS]);
    machine.check();
}

/// The driver tells of a fault at any event: those who may be to blame are all named.
#[test]
fn a_fault_names_what_was_under_way() {
    let _watchdog = Watchdog::new("a fault names what was under way");
    let machine = Machine::new(Settings::default(), 1);
    let (x, y, z) = (machine.array(0, WORDS), machine.array(0, WORDS), machine.array(0, WORDS));
    machine.fill(&x, 1);
    machine.engine.wait_for_all().expect("no op fails");
    x.buffer.writer().expect("it was issued").wait(&mut soon()).expect("it ends");
    machine.driver.order_fault(FaultKind::Kernel, 0, 719);
    machine.launch("scale", &y, &x, 1);
    machine.launch("scale", &z, &x, 2);
    machine.engine.wait_for_all().expect("all are issued");
    let fault = z.buffer.writer().expect("it was issued").wait(&mut soon()).expect_err("the device is lost");
    let start = "op 'scale' (#2) (or op 'scale' (#1)) failed on cuda:0: ";
    assert!(fault.to_string().starts_with(start), "{fault}");
    machine.check();
}

#[test]
fn a_fault_lands_what_waits_for_it() {
    let _watchdog = Watchdog::new("a fault lands what waits for it");
    for seed in 0..20 {
        let machine = Machine::new(Settings { seed, ..Settings::default() }, 2);
        let (x, out) = (machine.array(0, 2600), machine.array(0, 2600));
        let hosts: Vec<_> = (0..3).map(|_| machine.host(vec![0; 2600])).collect();
        machine.driver.order_fault(FaultKind::Kernel, 0, 719);
        machine.fill(&x, 1);
        machine.launch("scale", &out, &x, 1);
        for host in &hosts {
            machine.copy_out(host, &out);
            machine.add(host, 1);
        }
        for host in &hosts {
            let CudaError::Fault { error, .. } = machine.failure(&host.variable) else { panic!("a fault") };
            assert_eq!(error.code, 719);
        }
        machine.check();
    }
}

#[test]
fn waits_time_out_and_are_interrupted() {
    let _watchdog = Watchdog::new("waits time out and are interrupted");
    let machine = Machine::new(Settings::default(), 1);
    let x = machine.array(0, WORDS);
    machine.fill(&x, 1);
    machine.engine.wait_for_all().expect("no op fails");
    let fence = x.buffer.writer().expect("it was issued");
    // A stream that is in nobody's way waits for what has not been recorded: the fence can only time out.
    let device = machine.device(0);
    let held = device.new_stream().expect("a stream");
    machine.driver.hold(held.handle(), true);
    let stuck = held.fence(&weft_cuda::Label::from("stuck")).expect("a fence");
    let short = Duration::from_millis(20);
    let late = stuck.wait(&mut Wait { timeout: Some(short), ..Wait::default() }).expect_err("it is held");
    assert_eq!(late.to_string(), "op 'stuck' was not finished after 20 ms");
    let mut ticks = 0;
    let mut tick = || {
        ticks += 1;
        ticks < 2
    };
    let interrupted = stuck.wait(&mut Wait { tick: Some(&mut tick), ..Wait::default() });
    assert!(matches!(interrupted, Err(CudaError::Interrupted)));
    fence.wait(&mut soon()).expect("it is in nobody's way");
    machine.driver.hold(held.handle(), false);
    stuck.wait(&mut soon()).expect("it goes on");
    machine.check();
}
