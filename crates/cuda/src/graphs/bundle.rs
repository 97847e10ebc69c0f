//! Bundles: ops of one device that are issued together, again and again, each time on memory that may lie elsewhere.
//!
//! A bundle takes one turn of one stream and leaves one fence, which stands for all its members.
//!
//! | the members' addresses and parameters | they are issued |
//! |---|---|
//! | are new | in their order, on the one stream |
//! | were those of one of the last issues | as a graph, which is captured and made ready now, and launched |
//! | are those of a graph | by one launch of it |
//! | are new again and again, or the driver captures none of it | each on its own, as if there were no bundle |
//!
//! A graph has its addresses baked into it, and keeps no memory: it is launched only when the members' buffers lie there
//! once more, and these are held by the ops' own accesses.

use super::ready::Ready;
use super::recorder::Recorder;
use crate::buffers::Access;
use crate::copies::{Region, check_sizes, copy, put_copy};
use crate::devices::Device;
use crate::driver::DeviceAddress;
use crate::error::CudaError;
use crate::issue::{Issuing, Request};
use crate::label::Label;
use crate::launches::Launch;
use crate::streams::Fence;
use smallvec::SmallVec;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use weft_engine::AccessKind;

/// Graphs of a bundle that are ready at a time: for two calls in flight, and results that are held for a while.
const GRAPHS: usize = 8;
/// Issues that are remembered, for one of them to come again.
const SEEN: usize = 8;
/// Issues in a row of which none came again, after which the members stay apart.
const MISSES: u32 = 64;

/// An op of a bundle.
#[derive(Debug, Clone)]
pub enum Member {
    /// A launch.
    Launch(Launch),
    /// A copy within the device.
    Copy(CopyWithin),
}

/// A copy within a device.
#[derive(Debug, Clone)]
pub struct CopyWithin {
    label: Label,
    to: Region,
    from: Region,
    accesses: [Access; 2],
}

impl CopyWithin {
    /// Copies between two regions of one device.
    pub fn new(label: Label, to: Region, from: Region) -> Result<Self, CudaError> {
        check_sizes(to.bytes, from.bytes)?;
        let accesses = [from.access(AccessKind::Read), to.access(AccessKind::Mutate)];
        Ok(Self { label, to, from, accesses })
    }
}

impl Member {
    pub(super) fn label(&self) -> &Label {
        match self {
            Self::Launch(launch) => launch.label(),
            Self::Copy(copy) => &copy.label,
        }
    }

    pub(super) fn accesses(&self) -> &[Access] {
        match self {
            Self::Launch(launch) => launch.accesses(),
            Self::Copy(copy) => &copy.accesses,
        }
    }

    fn check(&self, device: &Device) -> Result<(), CudaError> {
        if let Self::Launch(launch) = self {
            launch.check()?;
        }
        match self.accesses().iter().find(|access| access.buffer.device() != device) {
            None => Ok(()),
            Some(access) => Err(CudaError::InvalidArgument(format!(
                "{} uses memory of cuda:{}, and is issued together with ops of cuda:{}",
                self.label(),
                access.buffer.device().index(),
                device.index()
            ))),
        }
    }

    pub(super) fn put(&self, issuing: &Issuing<'_>) -> Result<(), CudaError> {
        match self {
            Self::Launch(launch) => launch.put(issuing),
            Self::Copy(copy) => put_copy(issuing, &copy.to, &copy.from),
        }
    }

    /// Issues it on its own.
    pub fn issue(&self) -> Result<Fence, CudaError> {
        match self {
            Self::Launch(launch) => launch.issue(),
            Self::Copy(one) => copy(&one.label, &one.to, &one.from),
        }
    }

    /// All that a graph has baked into it: what is called, with which parameters, on which bytes.
    fn bake(&self, addresses: &[DeviceAddress], key: &mut Key) {
        if let Self::Launch(launch) = self {
            launch.bake(addresses, key);
        }
        for (access, address) in self.accesses().iter().zip(addresses) {
            key.extend([address + access.range.start as u64, address + access.range.end as u64]);
        }
    }
}

type Key = Vec<u64>;

/// Of each member where its buffers lie.
type Placed<'a> = Vec<(&'a Member, SmallVec<[DeviceAddress; 4]>)>;

#[derive(Default)]
struct Known {
    /// The one that was launched last comes last.
    graphs: Vec<(Key, Ready)>,
    seen: VecDeque<Key>,
    misses: u32,
    /// Whether the members stay apart from now on.
    apart: bool,
    launches: u64,
}

impl Known {
    /// Whether this has been issued lately; from now on it has.
    fn is_again(&mut self, key: &Key) -> bool {
        if let Some(at) = self.seen.iter().position(|seen| seen == key) {
            self.seen.remove(at);
            return true;
        }
        if self.seen.len() == SEEN {
            self.seen.pop_front();
        }
        self.seen.push_back(key.clone());
        false
    }

    fn missed(&mut self) {
        self.misses += 1;
        if self.misses >= MISSES {
            self.stay_apart();
        }
    }

    fn stay_apart(&mut self) {
        self.apart = true;
        self.graphs.clear();
        self.seen.clear();
    }
}

/// Ops that are issued together: as many, with the same kernels and shapes, each time.
pub struct Bundle {
    device: Device,
    label: Label,
    /// Held over an issue: the driver wants launches of one graph one after the other.
    known: Mutex<Known>,
}

/// What all members do with which buffers, and of each access of each member which of these it is.
fn union(members: &[Member]) -> (Vec<Access>, Vec<usize>) {
    let mut known: HashMap<(usize, usize, usize), usize> = HashMap::new();
    let (mut all, mut places): (Vec<Access>, Vec<usize>) = (Vec::new(), Vec::new());
    for access in members.iter().flat_map(Member::accesses) {
        let key = (Arc::as_ptr(&access.buffer).addr(), access.range.start, access.range.end);
        let place = *known.entry(key).or_insert(all.len());
        match all.get_mut(place) {
            // What is overwritten first is overwritten, whatever comes after.
            Some(known) if known.kind == AccessKind::Overwrite => {}
            Some(known) => known.kind = known.kind.merged(access.kind),
            None => all.push(access.clone()),
        }
        places.push(place);
    }
    (all, places)
}

impl Bundle {
    /// One of ops of a device; the label is that of the whole.
    #[must_use]
    pub fn new(device: &Device, label: Label) -> Self {
        Self { device: device.clone(), label, known: Mutex::default() }
    }

    /// How often its members were issued by one launch of a graph.
    #[must_use]
    pub fn launches(&self) -> u64 {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).launches
    }

    /// Issues the members, inside of an op that was granted their accesses. Those of all issues differ in their memory alone.
    pub fn issue(&self, members: &[Member]) -> Result<(), CudaError> {
        members.iter().try_for_each(|member| member.check(&self.device))?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.apart {
            drop(known);
            return members.iter().try_for_each(|member| member.issue().map(drop));
        }
        let (accesses, places) = union(members);
        let mut launched = false;
        let request = Request::new(&self.label, &accesses);
        let fence = self.device.issue(&request, |issuing| {
            let mut addresses = places.iter().map(|place| issuing.addresses[*place]);
            let each = |member| (member, addresses.by_ref().take(Member::accesses(member).len()).collect());
            let members: Placed<'_> = members.iter().map(each).collect();
            launched = self.put(&mut known, &members, issuing)?;
            Ok(())
        })?;
        if launched && let Some((_, ready)) = known.graphs.last_mut() {
            ready.launched(&fence);
            known.launches += 1;
        }
        Ok(())
    }

    /// Puts the members onto a stream. Answers whether it was by a launch of the graph that comes last now.
    fn put(&self, known: &mut Known, placed: &Placed<'_>, issuing: &Issuing<'_>) -> Result<bool, CudaError> {
        let mut key = Key::new();
        placed.iter().for_each(|(member, addresses)| member.bake(addresses, &mut key));
        if let Some(at) = known.graphs.iter().position(|(baked, _)| *baked == key) {
            known.misses = 0;
            known.graphs[at..].rotate_left(1);
        } else if known.is_again(&key) {
            match self.capture(placed) {
                Ok(ready) => {
                    known.misses = 0;
                    if known.graphs.len() == GRAPHS {
                        known.graphs.remove(0);
                    }
                    known.graphs.push((key, ready));
                }
                Err(fault @ CudaError::Fault { .. }) => return Err(fault),
                // What cannot be captured can be issued.
                Err(_) => {
                    known.stay_apart();
                    return Self::put_each(placed, issuing).map(|()| false);
                }
            }
        } else {
            known.missed();
            return Self::put_each(placed, issuing).map(|()| false);
        }
        let Some((_, ready)) = known.graphs.last() else { unreachable!("it was found, or made") };
        ready.launch(issuing).map(|()| true)
    }

    fn put_each(placed: &Placed<'_>, issuing: &Issuing<'_>) -> Result<(), CudaError> {
        let Issuing { driver, stream, .. } = *issuing;
        let put = |(member, addresses): &(&Member, SmallVec<[DeviceAddress; 4]>)| {
            member.put(&Issuing { driver, stream, addresses, label: member.label() })
        };
        placed.iter().try_for_each(put)
    }

    fn capture(&self, placed: &Placed<'_>) -> Result<Ready, CudaError> {
        let mut recorder = Recorder::new(&self.device, &self.label)?;
        placed.iter().try_for_each(|(member, addresses)| recorder.add(member, addresses))?;
        recorder.finish()
    }
}

impl fmt::Debug for Bundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bundle").field("op", &self.label).finish_non_exhaustive()
    }
}
