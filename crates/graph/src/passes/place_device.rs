//! `PlaceDevice`: where each node runs, and copies between.

use crate::error::Result;
use crate::graph::Graph;
use crate::node::{Node, NodeEntry, NodeRef};
use crate::registry::Op;
use crate::value::{Attributes, Value};
use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::Arc;

/// The device of each node.
pub const DEVICE: &str = "device";
/// The value of `DEVICE`.
pub type Devices = Vec<Option<Arc<str>>>;

/// Places nodes on the devices of their groups, and copies each value once to each device that takes it.
///
/// The group of a node is noted under `key`, with or without underscores. A node without one goes where its first input
/// that has a device is; a variable, to its first user; all else to `default`.
///
/// # Errors
///
/// If a group has no device.
pub fn place_device<S: BuildHasher>(
    graph: &Graph,
    key: &str,
    assign: &HashMap<String, String, S>,
    copy: &Arc<Op>,
    default: Option<&str>,
) -> Result<Graph> {
    let indexed = graph.indexed()?;
    let nodes = indexed.nodes();
    let hidden = format!("__{key}__");
    let mut devices: Devices = Vec::with_capacity(nodes.len());
    for node in nodes {
        let Some(group) = node.text(key).or_else(|| node.text(&hidden)) else {
            devices.push(None);
            continue;
        };
        if let Some(device) = assign.get(&*group) {
            devices.push(Some(device.as_str().into()));
        } else {
            let mut known: Vec<_> = assign.keys().map(String::as_str).collect();
            known.sort_unstable();
            let known = if known.is_empty() { "no group".into() } else { known.join(", ") };
            return Err(node.error(format!("its group '{group}' has no device: devices are assigned to {known}")));
        }
    }
    for number in 0..nodes.len() {
        if devices[number].is_none() && !nodes[number].is_variable() {
            let inputs = indexed.inputs(u32::try_from(number).unwrap_or(u32::MAX));
            devices[number] = inputs.iter().find_map(|id| devices[id.node as usize].clone());
        }
    }
    for number in (0..nodes.len()).rev() {
        let Some(own) = devices[number].clone() else { continue };
        for id in indexed.inputs(u32::try_from(number).unwrap_or(u32::MAX)) {
            devices[id.node as usize].get_or_insert_with(|| own.clone());
        }
    }
    let default: Option<Arc<str>> = default.map(Into::into);
    devices.iter_mut().filter(|device| device.is_none()).for_each(|device| device.clone_from(&default));
    inserted(graph, &devices, copy)
}

fn inserted(graph: &Graph, devices: &Devices, copy: &Arc<Op>) -> Result<Graph> {
    let indexed = graph.indexed()?;
    let mut made: Vec<NodeRef> = Vec::with_capacity(devices.len());
    let mut places: HashMap<usize, Option<Arc<str>>> = HashMap::new();
    let mut copies: HashMap<(u32, u32, Arc<str>), NodeRef> = HashMap::new();
    for (number, node) in (0_u32..).zip(indexed.nodes()) {
        let own = &devices[number as usize];
        let mut changed = false;
        let mut inputs = Vec::with_capacity(node.inputs().len());
        for (id, entry) in indexed.inputs(number).iter().zip(node.inputs()) {
            let source = &made[id.node as usize];
            changed |= !Arc::ptr_eq(source, &entry.node);
            let there = &devices[id.node as usize];
            let input = match own {
                Some(device) if there.is_some() && there != own => {
                    changed = true;
                    let key = (id.node, id.index, device.clone());
                    let node = if let Some(known) = copies.get(&key) {
                        known.clone()
                    } else {
                        let name = format!("{}_copy_{}_{device}", entry.node.name(), id.index).into();
                        let attributes = Attributes::new([("device".into(), Value::Text(device.clone()))]);
                        let input = NodeEntry { node: source.clone(), ..*entry };
                        let made = Arc::new(Node::call(copy.clone(), name, attributes, vec![input])?);
                        places.insert(Arc::as_ptr(&made).addr(), own.clone());
                        copies.insert(key, made.clone());
                        made
                    };
                    NodeEntry::new(node, 0)
                }
                _ => NodeEntry { node: source.clone(), ..*entry },
            };
            inputs.push(input);
        }
        let control: Vec<NodeRef> = indexed.control(number).iter().map(|&each| made[each as usize].clone()).collect();
        changed |= control.iter().zip(node.control()).any(|(a, b)| !Arc::ptr_eq(a, b));
        let new = if changed { Arc::new(node.rebuilt(inputs, control)) } else { node.clone() };
        places.insert(Arc::as_ptr(&new).addr(), own.clone());
        made.push(new);
    }
    let outputs = indexed.outputs().iter().map(|id| NodeEntry {
        node: made[id.node as usize].clone(),
        index: id.index,
        version: id.version,
    });
    let mut result = Graph::new(outputs.collect());
    let found: Devices =
        result.indexed()?.nodes().iter().map(|node| places.get(&Arc::as_ptr(node).addr()).cloned().flatten()).collect();
    result.set(DEVICE, found);
    Ok(result)
}
