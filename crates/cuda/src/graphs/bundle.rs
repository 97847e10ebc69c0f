//! Bundles: ops of one device that are issued together, again and again, each time on memory that may lie elsewhere.
//!
//! A bundle takes one turn of one stream and leaves one fence, which stands for all its members.
//!
//! | the members' addresses | they are issued |
//! |---|---|
//! | are new | in their order, on the one stream |
//! | were those of one of the last issues | as a graph, which is captured and made ready now, and launched |
//! | are those of a graph | by one launch of it; if that is refused, as if they were new |
//! | are new again and again, or the driver captures none of it | each on its own, as if there were no bundle |
//!
//! If the driver refuses a member, those before it have been issued. Those behind it are left to the caller, which knows
//! which of them can do without it.
//!
//! From one issue to the next, members differ in their addresses alone. So their accesses are worked out once. They are made
//! only to be issued one by one, or to be captured: a launch of a graph needs no more than the addresses of the buffers.
//!
//! A graph has its addresses baked into it, and keeps no memory: it is launched only when the members' buffers lie there
//! once more, and these are held by the ops' own accesses.

use super::ready::Ready;
use super::recorder::Recorder;
use crate::buffers::{BufferAccess, DeviceBuffer};
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
use std::ops::Range;
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
    accesses: [BufferAccess; 2],
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

    /// What it does with which buffers.
    #[must_use]
    pub fn accesses(&self) -> &[BufferAccess] {
        match self {
            Self::Launch(launch) => launch.accesses(),
            Self::Copy(copy) => &copy.accesses,
        }
    }

    /// The key of the place where it was pushed, if its label has none.
    fn place(&self) -> u64 {
        if let Self::Launch(launch) = self { launch.place() } else { 0 }
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
}

/// A buffer in which members lie, and how far they lie from where they lay when the op was made.
pub type Shifted = (Arc<DeviceBuffer>, isize);

/// How far the members of a bundle have come.
#[derive(Debug)]
pub struct Issued {
    /// The first ones, so many, are issued.
    pub count: usize,
    /// Why the one behind them was refused. Without a reason it was not tried, and is to be issued on its own.
    pub refused: Option<CudaError>,
}

impl Issued {
    /// The first ones, and no further ones were tried.
    const fn first(count: usize) -> Self {
        Self { count, refused: None }
    }
}

/// What members do with which buffers, as long as they lie as far from where they lay.
struct Template {
    moves: SmallVec<[isize; 8]>,
    /// By their places.
    accesses: Vec<(usize, Range<usize>, AccessKind)>,
    /// Of each access of each member which of these it is.
    of_members: Vec<usize>,
    members: usize,
}

impl Template {
    /// Nothing if it is not known which place an access is of.
    fn new(places: &[Shifted], members: &[Member]) -> Option<Self> {
        let mut known: HashMap<(usize, usize, usize), usize> = HashMap::new();
        let mut numbers: HashMap<usize, usize> = HashMap::new();
        for (number, (buffer, _)) in places.iter().enumerate() {
            if numbers.insert(Arc::as_ptr(buffer).addr(), number).is_some() {
                return None;
            }
        }
        let (mut accesses, mut of_members) = (Vec::<(usize, Range<usize>, AccessKind)>::new(), Vec::new());
        for access in members.iter().flat_map(Member::accesses) {
            let place = *numbers.get(&Arc::as_ptr(&access.buffer).addr())?;
            let number = *known.entry((place, access.range.start, access.range.end)).or_insert(accesses.len());
            match accesses.get_mut(number) {
                // What is overwritten first is overwritten, whatever comes after.
                Some((_, _, AccessKind::Overwrite)) => {}
                Some((_, _, kind)) => *kind = kind.merged(access.kind),
                None => accesses.push((place, access.range.clone(), access.kind)),
            }
            of_members.push(number);
        }
        let moves = places.iter().map(|(_, by)| *by).collect();
        Some(Self { moves, accesses, of_members, members: members.len() })
    }

    fn fits(&self, places: &[Shifted]) -> bool {
        self.moves.iter().eq(places.iter().map(|(_, by)| by))
    }

    /// The accesses of all members to these buffers.
    fn accesses(&self, places: &[Shifted]) -> SmallVec<[BufferAccess; 8]> {
        let access = |(place, range, kind): &(usize, Range<usize>, AccessKind)| {
            // As an overwrite it might take another block, and the graph be captured anew.
            let kind = if *kind == AccessKind::Overwrite { AccessKind::Mutate } else { *kind };
            BufferAccess::part(&places[*place].0, range.clone(), kind)
        };
        self.accesses.iter().map(access).collect()
    }

    /// What members that lie at these addresses have baked into a graph, besides what never changes.
    fn key(&self, addresses: &[DeviceAddress]) -> Key {
        self.moves.iter().map(|by| by.cast_unsigned() as u64).chain(addresses.iter().copied()).collect()
    }

    fn placed<'a>(&self, members: &'a [Member], addresses: &[DeviceAddress]) -> Addressed<'a> {
        let mut addresses = self.of_members.iter().map(|number| addresses[*number]);
        let each = |member| (member, addresses.by_ref().take(Member::accesses(member).len()).collect());
        members.iter().map(each).collect()
    }
}

type Key = SmallVec<[u64; 16]>;

/// Of each member where its buffers lie.
type Addressed<'a> = Vec<(&'a Member, SmallVec<[DeviceAddress; 4]>)>;

/// Makes all members, on the memory where they are to be issued now; nothing if one cannot be.
type Make<'a> = dyn Fn() -> Option<Vec<Member>> + 'a;

#[derive(Default)]
struct Known {
    template: Option<Arc<Template>>,
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

    /// What the members do, and these if they had to be made to know that.
    fn template(
        &self,
        known: &mut Known,
        places: &[Shifted],
        make: &Make<'_>,
    ) -> Option<(Arc<Template>, Option<Vec<Member>>)> {
        if let Some(template) = &known.template
            && template.fits(places)
        {
            return Some((Arc::clone(template), None));
        }
        let members = make()?;
        if members.iter().any(|member| member.check(&self.device).is_err()) {
            return None;
        }
        let template = Arc::new(Template::new(places, &members)?);
        known.template = Some(Arc::clone(&template));
        Some((template, Some(members)))
    }

    /// Issues the members, or the first ones of them, inside of an op that was granted their accesses. Those of all issues differ in
    /// their memory alone, which lies in these places. After an error nobody knows what has been issued.
    pub fn issue(&self, places: &[Shifted], make: &Make<'_>) -> Result<Issued, CudaError> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.apart {
            return Ok(Issued::first(0));
        }
        let Some((template, members)) = self.template(&mut known, places, make) else { return Ok(Issued::first(0)) };
        let accesses = template.accesses(places);
        let request = Request::new(&self.label, &accesses);
        let mut put = None;
        let fence = self.device.issue(&request, |issuing| {
            put = Some(self.put(&mut known, &template, (members, make), issuing));
            Ok(())
        });
        // What was refused before anything was issued is refused to those members alone that ask for it.
        let Some((issued, launched)) = put else { return Ok(Issued::first(0)) };
        let fence = fence?;
        if launched && let Some((_, ready)) = known.graphs.last_mut() {
            ready.launched(&fence);
            known.launches += 1;
        }
        Ok(issued)
    }

    /// Puts the members onto a stream. Answers how far that went, and whether it was by a launch of the graph that comes last now.
    fn put(
        &self,
        known: &mut Known,
        template: &Template,
        (members, make): (Option<Vec<Member>>, &Make<'_>),
        issuing: &Issuing<'_>,
    ) -> (Issued, bool) {
        let key = template.key(issuing.addresses);
        let launched = |known: &Known| {
            let ready = known.graphs.last().is_some_and(|(_, ready)| ready.launch(issuing).is_ok());
            ready.then_some((Issued::first(template.members), true))
        };
        let found = known.graphs.iter().position(|(baked, _)| *baked == key);
        if let Some(at) = found {
            known.misses = 0;
            known.graphs[at..].rotate_left(1);
            if let Some(launched) = launched(known) {
                return launched;
            }
        }
        let Some(members) = members.or_else(make) else { return (Issued::first(0), false) };
        let placed = template.placed(&members, issuing.addresses);
        if found.is_none() && known.is_again(&key) {
            if let Ok(ready) = self.capture(&placed) {
                known.misses = 0;
                if known.graphs.len() == GRAPHS {
                    known.graphs.remove(0);
                }
                known.graphs.push((key, ready));
                if let Some(launched) = launched(known) {
                    return launched;
                }
            } else {
                known.stay_apart();
            }
        } else if found.is_none() {
            known.missed();
        }
        // A launch that was refused has issued nothing, and what cannot be captured can be issued.
        (Self::put_each(&placed, issuing), false)
    }

    /// Puts one member after the other, up to the first one that is refused.
    fn put_each(placed: &Addressed<'_>, issuing: &Issuing<'_>) -> Issued {
        let Issuing { driver, stream, .. } = *issuing;
        for (count, (member, addresses)) in placed.iter().enumerate() {
            let label = &member.label().of_running(member.place());
            if let Err(error) = member.put(&Issuing { driver, stream, addresses, label }) {
                return Issued { count, refused: Some(error) };
            }
        }
        Issued::first(placed.len())
    }

    fn capture(&self, placed: &Addressed<'_>) -> Result<Ready, CudaError> {
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
