//! Graphs of the simulated machine: their nodes run in any order that their dependencies allow.
//!
//! Each node of a graph that is ready has a place of its own in the vector clocks, as a stream has: so an access of one
//! node that is not ordered behind a conflicting one of another is a hazard, as between streams.

use super::clock::Clock;
use super::shadow::Name;
use super::state::{State, Work};
use crate::driver::NodeHandle;
use std::ops::Range;
use std::sync::Arc;

/// Handles of a capture's nodes begin this far apart.
const NODES: usize = 1 << 20;

#[derive(Debug)]
pub(super) struct Node {
    name: Name,
    work: Work,
    /// The nodes before it.
    after: Vec<usize>,
}

/// The recording on a stream so far.
#[derive(Debug)]
pub(super) struct Capture {
    first: usize,
    nodes: Vec<Node>,
    /// The predecessors of the next node.
    after: Vec<usize>,
}

/// A graph that can be launched.
#[derive(Debug)]
pub(super) struct Executable {
    nodes: Arc<Vec<Node>>,
    /// The first of as many streams as there are nodes; nothing is ever issued on them.
    first: usize,
}

impl Capture {
    pub(super) fn new(handle: usize) -> Self {
        Self { first: handle * NODES, nodes: Vec::new(), after: Vec::new() }
    }

    pub(super) fn add(&mut self, name: Name, work: Work) {
        let after = std::mem::replace(&mut self.after, vec![self.nodes.len()]);
        self.nodes.push(Node { name, work, after });
    }

    pub(super) fn dependencies(&self) -> Vec<NodeHandle> {
        self.after.iter().map(|node| NodeHandle(self.first + node)).collect()
    }

    /// Lets the next node come after these. Answers whether they are nodes of this capture.
    pub(super) fn depend_on(&mut self, nodes: &[NodeHandle]) -> bool {
        let found = nodes.iter().map(|node| node.0.checked_sub(self.first).filter(|at| *at < self.nodes.len()));
        found.collect::<Option<Vec<_>>>().map(|after| self.after = after).is_some()
    }

    pub(super) fn into_nodes(self) -> Vec<Node> {
        self.nodes
    }
}

impl Executable {
    /// Places of its nodes in the vector clocks.
    pub(super) fn lanes(&self) -> Range<usize> {
        self.first..self.first + self.nodes.len()
    }
}

impl State {
    pub(super) fn make_ready(&mut self, device: usize, nodes: Arc<Vec<Node>>) -> Executable {
        let first = self.streams.len();
        for _ in 0..nodes.len() {
            let lane = self.add_stream(device);
            self.streams[lane].alive = false;
        }
        Executable { nodes, first }
    }

    /// Runs a graph's nodes, one after the other, in an order that their dependencies allow.
    pub(super) fn execute_graph(&mut self, at: usize, before: &Clock, executable: &Executable, launch: u64) {
        let (device, start) = (self.streams[at].device, self.streams[at].time);
        let mut clocks: Vec<Option<Clock>> = vec![None; executable.nodes.len()];
        let mut left: Vec<usize> = (0..executable.nodes.len()).collect();
        while !left.is_empty() && self.devices[device].fault.is_none() {
            let ready = |node: &usize| executable.nodes[*node].after.iter().all(|before| clocks[*before].is_some());
            let ready: Vec<usize> = (0..left.len()).filter(|place| ready(&left[*place])).collect();
            let node = left.swap_remove(ready[self.draw(ready.len())]);
            let (Node { name, work, after }, lane) = (&executable.nodes[node], executable.first + node);
            let mut clock = before.clone();
            self.streams[lane].time = start;
            for before in after {
                clock.join(clocks[*before].as_ref().expect("it has run"));
                self.streams[lane].time = self.streams[lane].time.max(self.streams[executable.first + before].time);
            }
            // A node is ordered behind itself, as a command is.
            clock.set(lane, launch);
            let name = Name { stream: lane, number: launch, ..name.clone() };
            self.execute(lane, &name, &clock, work);
            clocks[node] = Some(clock);
            self.streams[at].time = self.streams[at].time.max(self.streams[lane].time);
        }
    }
}
