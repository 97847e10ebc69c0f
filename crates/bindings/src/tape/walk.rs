//! The order in which gradients are computed.

use super::node::TapeNode;
use pyo3::prelude::*;
use std::collections::HashMap;

/// Nodes in order, leaves with the place in that list, and whether there are other leaves.
type Backwards = (Vec<Py<TapeNode>>, Vec<(Py<TapeNode>, usize)>, bool);

/// From `heads` back: the nodes on the way to `wanted` (to any leaf, if there are none), the latest first; for each leaf among
/// them, the place in that list of the last node that adds to it, or the list's length; and whether other leaves were met.
#[pyfunction]
#[pyo3(signature = (heads, wanted=None))]
#[allow(clippy::needless_pass_by_value)] // extracted from sequences
pub(crate) fn tape_walk(
    py: Python<'_>,
    heads: Vec<Py<TapeNode>>,
    wanted: Option<Vec<Py<TapeNode>>>,
) -> PyResult<Backwards> {
    struct Met {
        node: Py<TapeNode>,
        producers: Vec<usize>,
        needed: bool,
    }
    let mut known: HashMap<usize, usize> = HashMap::new();
    let mut met: Vec<Met> = Vec::new();
    let is_wanted = |node: &Py<TapeNode>| match &wanted {
        Some(wanted) => wanted.iter().any(|each| each.is(node)),
        None => node.get().is_leaf(),
    };
    let mut enter = |node: Py<TapeNode>, met: &mut Vec<Met>| {
        *known.entry(node.as_ptr().addr()).or_insert_with(|| {
            met.push(Met { needed: is_wanted(&node), node, producers: Vec::new() });
            met.len() - 1
        })
    };
    for head in heads {
        enter(head, &mut met);
    }
    let (mut at, mut others) = (0, false);
    while at < met.len() {
        let node = met[at].node.clone_ref(py);
        node.get().check(py)?;
        if node.get().is_leaf() && !met[at].needed {
            others = true;
        }
        met[at].producers = node.get().producers(py).into_iter().map(|each| enter(each, &mut met)).collect();
        at += 1;
    }
    let mut sorted: Vec<usize> = (0..met.len()).collect();
    sorted.sort_unstable_by_key(|&at| met[at].node.get().order);
    for &at in &sorted {
        met[at].needed |= met[at].producers.iter().any(|&each| met[each].needed);
    }
    sorted.retain(|&at| met[at].needed);
    sorted.reverse();
    let (leaves, nodes): (Vec<usize>, Vec<usize>) = sorted.into_iter().partition(|&at| is_wanted(&met[at].node));
    let mut last: HashMap<usize, usize> = HashMap::new();
    for (place, &at) in nodes.iter().enumerate() {
        for &each in &met[at].producers {
            last.insert(each, place);
        }
    }
    let leaves = leaves.iter().map(|at| (met[*at].node.clone_ref(py), last.get(at).copied().unwrap_or(nodes.len())));
    let leaves = leaves.collect();
    Ok((nodes.iter().map(|&at| met[at].node.clone_ref(py)).collect(), leaves, others))
}
