//! Who runs the blocks of a step: also those who become idle while it is under way.

#![cfg(not(miri))] // thousands of blocks, so that those who come find some left

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;
use weft_array::{Access, Array, Blocked, Call, DType, push, push_blocked};
use weft_engine::{Cause, Engine, OpContext, PushOptions, Settings, Wait};

/// Blocks, of which the first lets another op end; the others wait a little for a second thread to run one.
struct Shared {
    release: Mutex<Option<Sender<()>>>,
    threads: Mutex<Vec<ThreadId>>,
    came: Condvar,
}

impl Blocked for Shared {
    fn blocks(&self) -> usize {
        20_000
    }

    fn operations(&self) -> usize {
        usize::MAX
    }

    unsafe fn run_block(&self, _: &[*mut u8], _: *mut u8, _: usize) -> Result<(), Cause> {
        drop(self.release.lock().unwrap_or_else(PoisonError::into_inner).take());
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        if !threads.contains(&thread::current().id()) {
            threads.push(thread::current().id());
            self.came.notify_all();
        }
        drop(self.came.wait_timeout_while(threads, Duration::from_millis(1), |threads| threads.len() < 2));
        Ok(())
    }
}

/// An op that has begun, and ends when it is let go.
fn hold(array: &Array) -> Sender<()> {
    let (release, released): (Sender<()>, Receiver<()>) = channel();
    let (tell, begun) = channel();
    let arrays = [(array, Access::Overwrite)];
    let op = move |_: &mut OpContext<'_>| {
        let _ = tell.send(());
        let _ = released.recv();
        Ok(())
    };
    push(op, &Call::on(array.engine(), &arrays, PushOptions::default())).expect("an open engine");
    begun.recv_timeout(Duration::from_secs(200)).expect("nothing is in its way");
    release
}

#[test]
fn a_worker_that_becomes_idle_helps_with_what_is_under_way() {
    let engine = Engine::new(Settings { workers: Some(2), ..Settings::default() }).expect("valid settings");
    let [held, out] = [(); 2].map(|()| Array::empty(&engine, &[8], DType::UInt8).expect("a small array"));
    let release = Mutex::new(Some(hold(&held)));
    let step = Arc::new(Shared { release, threads: Mutex::default(), came: Condvar::new() });
    let blocked: Arc<dyn Blocked> = step.clone();
    // SAFETY: the array is dense, and of the size that the step was made for.
    unsafe { push_blocked(&blocked, &[(&out, Access::Overwrite)], PushOptions::default()) }.expect("an open engine");
    out.wait_to_read(&mut Wait { timeout: Some(Duration::from_secs(200)), ..Wait::default() }).expect("it ends");
    assert_eq!(step.threads.lock().unwrap_or_else(PoisonError::into_inner).len(), 2);
}

/// Blocks of which one panics, on the op's own worker or on one that helps, once both are at work. Another one then holds the
/// arrays for a while.
struct Falling {
    by_own: bool,
    seen: Mutex<Seen>,
    came: Condvar,
    follower: Mutex<Receiver<()>>,
}

#[derive(Default)]
struct Seen {
    threads: Vec<ThreadId>,
    fell: bool,
    held: bool,
    /// Whether the next op on the arrays ran meanwhile.
    early: bool,
}

impl Blocked for Falling {
    fn blocks(&self) -> usize {
        20_000
    }

    fn operations(&self) -> usize {
        usize::MAX
    }

    unsafe fn run_block(&self, _: &[*mut u8], _: *mut u8, _: usize) -> Result<(), Cause> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let own = thread::current().id();
        if !seen.threads.contains(&own) {
            seen.threads.push(own);
            self.came.notify_all();
        }
        if seen.threads.len() < 2 {
            drop(self.came.wait_timeout_while(seen, Duration::from_millis(1), |seen| seen.threads.len() < 2));
        } else if !seen.fell {
            if (seen.threads[0] == own) == self.by_own {
                seen.fell = true;
                self.came.notify_all();
                drop(seen);
                panic!("a block fell");
            }
            // The other one leaves blocks for it.
            drop(self.came.wait_timeout_while(seen, Duration::from_secs(60), |seen| !seen.fell));
        } else if !seen.held {
            seen.held = true;
            drop(seen);
            let follower = self.follower.lock().unwrap_or_else(PoisonError::into_inner);
            let early = follower.recv_timeout(Duration::from_millis(200)).is_ok();
            self.seen.lock().unwrap_or_else(PoisonError::into_inner).early = early;
        }
        Ok(())
    }
}

#[test]
fn a_panic_in_a_block_is_the_ops_failure_once_all_blocks_have_ended() {
    for by_own in [true, false] {
        let engine = Engine::new(Settings { workers: Some(2), ..Settings::default() }).expect("valid settings");
        let [out, other] = [(); 2].map(|()| Array::empty(&engine, &[8], DType::UInt8).expect("a small array"));
        let (tell, follower) = channel();
        let (seen, follower) = (Mutex::default(), Mutex::new(follower));
        let step = Arc::new(Falling { by_own, seen, came: Condvar::new(), follower });
        let blocked: Arc<dyn Blocked> = step.clone();
        let arrays = [(&out, Access::Overwrite), (&other, Access::Overwrite)];
        // SAFETY: the arrays are dense, and of the sizes that the step was made for.
        unsafe { push_blocked(&blocked, &arrays, PushOptions::default()) }.expect("an open engine");
        // The next op runs in spite of the failure, as it looks at nothing.
        let next = move |_: &mut OpContext<'_>| {
            let _ = tell.send(());
            Ok(())
        };
        push(next, &Call::on(&engine, &arrays[..1], PushOptions::default())).expect("an open engine");
        out.wait_to_read(&mut Wait { timeout: Some(Duration::from_secs(200)), ..Wait::default() }).expect("it ends");
        let failed = other.wait_to_read(&mut Wait { timeout: Some(Duration::from_secs(200)), ..Wait::default() });
        let failed = failed.expect_err("the op has failed").to_string();
        assert!(failed.contains("a block fell"), "{failed}");
        let seen = step.seen.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(seen.held && !seen.early, "the next op had the arrays while a block did ({by_own})");
    }
}
