//! Communicators: the state that all calls share, and how one call is carried out.

use crate::flight::{ALIVE_EVERY, Away, Call, Carried, Flight, Halt, Phase, Stopped};
use crate::notice::Notice;
use crate::peers::Peers;
use crate::symbols::Status;
use crate::{Handle, Job, Library, MpiError, Work};
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a message may come after the notice that its sender has ended.
const LATE: Duration = Duration::from_secs(1);

/// The base of a communicator.
pub struct Settings {
    /// Its name, for messages.
    pub name: String,
    /// A duplicate for the calls.
    pub data: Handle,
    /// A duplicate for headers and notices.
    pub control: Handle,
    /// This process's rank.
    pub rank: usize,
    /// How many ranks there are.
    pub size: usize,
    /// The processes of the ranks on this machine.
    pub processes: Vec<Option<u32>>,
    /// Whether ranks agree on each call before it starts.
    pub check: bool,
    /// How long a rank waits for the others.
    pub timeout: Duration,
}

#[derive(Default)]
struct State {
    closed: bool,
    broken: Option<String>,
    /// Calls that are being carried out.
    running: usize,
    /// Collectives that have begun, and that are complete.
    begun: u64,
    completed: u64,
    /// The number of collectives before a rank's end, and its words.
    left: Vec<Option<(u64, String)>>,
}

/// A communicator of MPI's, used by one op after another.
pub struct Communicator {
    pub(crate) library: Arc<Library>,
    settings: Settings,
    peers: Peers,
    owner: u32,
    state: Mutex<State>,
    /// Held during a look for notices.
    looking: Mutex<()>,
}

impl Communicator {
    /// A communicator on two duplicates of its own.
    #[must_use]
    pub fn new(library: Arc<Library>, mut settings: Settings) -> Self {
        let mut processes = std::mem::take(&mut settings.processes);
        if let Some(own) = processes.get_mut(settings.rank) {
            *own = None;
        }
        let state = State { left: vec![None; settings.size], ..State::default() };
        Self {
            library,
            settings,
            peers: Peers(processes),
            owner: std::process::id(),
            state: Mutex::new(state),
            looking: Mutex::new(()),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its base.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Why it is broken, if it is.
    #[must_use]
    pub fn broken(&self) -> Option<String> {
        self.state().broken.clone()
    }

    /// Whether no call is being carried out.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.state().running == 0
    }

    /// Refuses to be used any more.
    pub fn close(&self) {
        self.state().closed = true;
    }

    /// Refuses a call while it cannot be carried out.
    pub fn refuse(&self) -> Result<(), MpiError> {
        let (name, owner) = (&self.settings.name, self.owner);
        if owner != std::process::id() {
            return Err(MpiError::Forked { name: name.clone(), owner });
        }
        self.refuse_in(&self.state())
    }

    fn refuse_in(&self, state: &State) -> Result<(), MpiError> {
        let name = &self.settings.name;
        if state.closed {
            return Err(MpiError::Closed(name.clone()));
        }
        match &state.broken {
            None => Ok(()),
            Some(reason) => {
                let reason = format!("communicator '{name}' is broken: {reason}");
                Err(MpiError::Broken { reason, abandoned: false })
            }
        }
    }

    /// Breaks it, if nothing else has, and tells the other ranks why.
    pub fn fail(&self, reason: &str) {
        if self.owner != std::process::id() || !self.set_broken(reason) || self.library.is_finalized() {
            return;
        }
        let notice = Notice::Broken { rank: self.settings.rank, text: reason.to_owned() };
        self.tell(&notice);
    }

    /// Tells the other ranks that this one has ended, and why if not because it is through.
    pub fn leave(&self, reason: &str) {
        if self.owner != std::process::id() || self.library.is_finalized() {
            return;
        }
        let (closed, completed) = {
            let state = self.state();
            (state.closed || state.broken.is_some(), state.completed)
        };
        if !closed {
            let rank = self.settings.rank;
            self.tell(&Notice::Left { rank, completed, text: reason.to_owned() });
        }
    }

    fn tell(&self, notice: &Notice) {
        let Settings { control, rank, size, .. } = self.settings;
        // A rank that cannot be told finds out by its time limit.
        let _ = notice.send(&self.library, control, rank, size);
    }

    /// Answers whether this was the first to break it.
    fn set_broken(&self, reason: &str) -> bool {
        let mut state = self.state();
        let first = state.broken.is_none() && !state.closed;
        if first {
            state.broken = Some(reason.to_owned());
        }
        first
    }

    /// Begins a call, which is then [carried on](Self::carry_on) until it is out.
    pub fn begin(&self, job: &Job) -> Result<Flight, MpiError> {
        let mut state = self.state();
        self.refuse_in(&state)?; // who was forked has nothing to begin
        state.running += 1;
        state.begun += u64::from(!job.is_message());
        let number = (!job.is_message()).then_some(state.begun);
        Ok(Flight::new(number, job.bytes))
    }

    /// Carries a call on until it is complete on this rank, or the thread is called away.
    ///
    /// # Safety
    ///
    /// The job and the memory are the same each time, and the call is not out. `from` and `to` are valid for the job's
    /// reads and writes, and are not touched elsewhere until it is out; after an error that is
    /// [abandoned](MpiError::is_abandoned), ever. Where they are equal the job works in place.
    pub unsafe fn carry_on(
        &self,
        flight: &mut Flight,
        job: &Job,
        from: *const u8,
        to: *mut u8,
        away: Away<'_>,
    ) -> Result<Carried, MpiError> {
        // SAFETY: the caller's promise.
        let outcome = unsafe { self.advance(&mut Call { flight, job, away }, from, to) };
        if matches!(outcome, Err(Halt::Away)) {
            return Ok(Carried::On);
        }
        {
            let mut state = self.state();
            state.running -= 1;
            state.completed += u64::from(!job.is_message() && outcome.is_ok());
        }
        let Err(Halt::Failed(Stopped { reason, abandoned })) = outcome else { return Ok(Carried::Out) };
        self.fail(&reason);
        Err(MpiError::Broken { reason, abandoned })
    }

    unsafe fn advance(&self, call: &mut Call<'_>, from: *const u8, to: *mut u8) -> Result<(), Halt> {
        let job = call.job;
        if !matches!(call.flight.phase, Phase::Agreed | Phase::Moving(_)) {
            if self.settings.check && self.settings.size > 1 {
                match job.work {
                    Work::Send { to, tag } => self.announce(call, to, tag)?,
                    Work::Receive { from, tag } => self.expect(call, from, tag)?,
                    _ => self.agree(call)?,
                }
            }
            call.flight.phase = Phase::Agreed;
        }
        let mut request = 0;
        if let Phase::Moving(moving) = call.flight.phase {
            request = moving;
        } else {
            // SAFETY: the caller's promise.
            unsafe { self.start(job, from.cast(), to.cast(), &raw mut request) }?;
        }
        let mut status = Status::default();
        let outcome = self.poll(call, &mut request, &mut status, None);
        call.flight.phase = Phase::Moving(request);
        outcome?;
        if let Work::Receive { from, .. } = job.work {
            let mut count = 0;
            let (status, datatype) = (status.as_ptr().cast(), job.datatype);
            // SAFETY: the status is that of the message.
            unsafe { self.library.get_count(status, datatype, &raw mut count) }?;
            if count != job.count {
                let (wanted, asked) = (job.count, job.describe());
                return Err(Halt::failed(format!("rank {from} has sent {count} elements, and {asked} takes {wanted}")));
            }
        }
        Ok(())
    }

    unsafe fn start(&self, job: &Job, from: *const c_void, to: *mut c_void, request: *mut u64) -> Result<(), MpiError> {
        let (library, on, of, count) = (&*self.library, self.settings.data, job.datatype, job.count);
        let in_place = std::ptr::without_provenance::<c_void>(library.constants.in_place);
        let input = if from == to.cast_const() { in_place } else { from };
        // SAFETY: the caller's promise.
        unsafe {
            match job.work {
                Work::AllReduce { op } => library.iallreduce(input, to, count, of, op, on, request),
                Work::Broadcast { root } => library.ibcast(to, count, of, root, on, request),
                Work::AllGather => library.iallgather(from, count, of, to, count, of, on, request),
                Work::ReduceScatter { op } => library.ireduce_scatter_block(from, to, count, of, op, on, request),
                Work::AllToAll => library.ialltoall(from, count, of, to, count, of, on, request),
                Work::Send { to: rank, tag } => library.isend(from, count, of, rank, tag, on, request),
                Work::Receive { from: rank, tag } => library.irecv(to, count, of, rank, tag, on, request),
                Work::Barrier => library.ibarrier(on, request),
            }
        }
    }

    /// Polls a request until it is done. `awaited` is the rank that it waits for, if there is one.
    pub(crate) fn poll(
        &self,
        call: &mut Call<'_>,
        request: &mut u64,
        status: &mut Status,
        awaited: Option<usize>,
    ) -> Result<(), Halt> {
        loop {
            let done = self.library.is_done(request, status);
            match done {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(error) => {
                    // The fate of the request is unknown.
                    let reason = format!("{}: {error}", call.job.describe());
                    return Err(Halt::Failed(Stopped { reason, abandoned: true }));
                }
            }
            if (call.away)(call.flight.pace.is_long()) {
                return Err(Halt::Away);
            }
            if call.flight.pace.pause()
                && let Err(reason) = self.look_round(call, awaited)
            {
                let abandoned = !self.take_back(call.job, request, status);
                return Err(Halt::Failed(Stopped { reason, abandoned }));
            }
        }
    }

    /// Takes back a receipt that nothing has come for. Answers whether it could.
    fn take_back(&self, job: &Job, request: &mut u64, status: &mut Status) -> bool {
        if !matches!(job.work, Work::Receive { .. }) {
            return false;
        }
        // SAFETY: the request is active.
        if unsafe { self.library.cancel(request) }.is_err() {
            return false;
        }
        (0..1000).any(|_| self.library.is_done(request, status).unwrap_or(false))
    }

    /// Looks whether it makes sense to go on waiting, and says why if it does not.
    fn look_round(&self, call: &mut Call<'_>, awaited: Option<usize>) -> Result<(), String> {
        let (flight, job, own) = (&mut *call.flight, call.job, self.settings.rank);
        let number = flight.number;
        let waiting = || format!("rank {own} was in {}", self.name_call(job, number));
        self.listen();
        {
            let state = self.state();
            if let Some(reason) = &state.broken {
                return Err(format!("{reason}; {}", waiting()));
            }
            let elapsed = flight.pace.elapsed();
            let sender = match job.work {
                Work::Receive { from: rank, .. } | Work::Send { to: rank, .. } => usize::try_from(rank).ok(),
                _ => None,
            };
            for (rank, left) in state.left.iter().enumerate() {
                let Some((completed, text)) = left else { continue };
                let gone = match flight.number {
                    Some(number) => *completed < number,
                    None => sender == Some(rank) && elapsed > LATE,
                };
                if gone {
                    let why = if text.is_empty() { String::new() } else { format!(" with {text}") };
                    return Err(format!("rank {rank} has ended{why}; {}", waiting()));
                }
            }
        }
        let elapsed = flight.pace.elapsed();
        if elapsed >= flight.alive {
            flight.alive = elapsed + ALIVE_EVERY;
            if let Some((rank, process)) = self.peers.find_dead() {
                // It may have said why, and the others may have heard first.
                self.listen();
                if self.state().broken.is_none() && self.state().left[rank].is_none() {
                    return Err(format!("rank {rank} (process {process}) has died; {}", waiting()));
                }
            }
        }
        if elapsed < self.settings.timeout {
            return Ok(());
        }
        let limit = self.settings.timeout.as_secs_f64();
        Err(match awaited {
            Some(rank) => format!("rank {rank} has not come within {limit} s; {}", waiting()),
            None => {
                format!("some rank has not come within {limit} s (WEFT_COMM_CHECK=1 would tell which); {}", waiting())
            }
        })
    }

    fn name_call(&self, job: &Job, number: Option<u64>) -> String {
        let (name, described) = (&self.settings.name, job.describe());
        match number {
            Some(number) => format!("collective {number} of communicator '{name}', {described}"),
            None => format!("a message of communicator '{name}', {described}"),
        }
    }

    /// Takes in the notices that have come.
    fn listen(&self) {
        let Ok(_looking) = self.looking.try_lock() else { return };
        while let Ok(Some(notice)) = Notice::receive(&self.library, self.settings.control) {
            match notice {
                Notice::Broken { rank, text } => {
                    self.set_broken(&format!("rank {rank} has given up: {text}"));
                }
                Notice::Left { rank, completed, text } => {
                    if let Some(left) = self.state().left.get_mut(rank) {
                        *left = Some((completed, text));
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Communicator, Settings};
    use crate::symbols::{Library, Symbols};
    use crate::{Handle, Job, MpiError, Place, Work};
    use std::ffi::{c_int, c_void};
    use std::sync::Arc;
    use std::time::Duration;

    unsafe extern "C" fn begin(
        _: *const c_void,
        _: *mut c_void,
        _: c_int,
        _: Handle,
        _: Handle,
        _: Handle,
        _: *mut u64,
    ) -> c_int {
        0
    }

    /// Carries an all-reduce out; whether MPI may still write to its memory.
    fn is_abandoned(symbols: Symbols) -> bool {
        let settings = Settings {
            name: "world".to_owned(),
            data: 1,
            control: 2,
            rank: 0,
            size: 1,
            processes: vec![None],
            check: false,
            timeout: Duration::from_secs(1),
        };
        let communicator = Communicator::new(Arc::new(Library::of(symbols)), settings);
        let work = Work::AllReduce { op: 1 };
        let (signature, place) = ("all_reduce".into(), Place::Known(String::new()));
        let job = Job { work, count: 1, datatype: 1, bytes: 1, signature, place };
        let mut flight = communicator.begin(&job).expect("it is whole");
        let mut byte = 0_u8;
        // SAFETY: the functions of the library touch no memory.
        let carried =
            unsafe { communicator.carry_on(&mut flight, &job, &raw const byte, &raw mut byte, &mut |_| false) };
        assert!(communicator.broken().is_some());
        carried.is_err_and(|error: MpiError| error.is_abandoned())
    }

    #[test]
    fn what_cannot_be_asked_about_is_given_up_on() {
        assert!(!is_abandoned(Symbols::refusing()), "it has not begun");
        assert!(is_abandoned(Symbols { iallreduce: begin, ..Symbols::refusing() }), "nobody knows whether it goes on");
    }
}
