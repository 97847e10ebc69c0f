//! From Dask's nodes to calls on numbered values.
//!
//! Nodes of Dask's own classes, and tuples of its older form, become calls that need no Python between them; a node of
//! another class computes by itself.

use super::legacy::Conversion;
use super::run::{Argument, Few, Function, Node, Slot, Task};
use crate::interpreter::level::Level;
use pyo3::exceptions::{PyKeyError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple, PyType};
use pyo3::{PyTypeInfo, intern};

/// Dask's classes.
pub(super) struct Kinds<'py> {
    task: Bound<'py, PyType>,
    reference: Bound<'py, PyType>,
    alias: Bound<'py, PyType>,
    data: Bound<'py, PyType>,
    list: Bound<'py, PyType>,
    any: Bound<'py, PyType>,
}

impl<'py> Kinds<'py> {
    /// `Task`, `TaskRef`, `Alias`, `DataNode`, `List`, `GraphNode`.
    pub(super) fn new(kinds: &Bound<'py, PyTuple>) -> PyResult<Self> {
        let (task, reference, alias, data, list, any) = kinds.extract()?;
        Ok(Self { task, reference, alias, data, list, any })
    }
}

/// The state of a key.
#[derive(Clone, Copy, PartialEq)]
enum State {
    /// It was named, and nothing else.
    Named,
    /// Its dependencies are being read.
    Open,
    /// Placed behind its dependencies.
    Placed,
}

struct Entry<'py> {
    key: Bound<'py, PyAny>,
    state: State,
    slot: u32,
    /// Its place among the calls; none if its value is known.
    call: Option<u32>,
    work: Option<Argument>,
    /// Keys that it needs, by their entries.
    needs: Few,
}

#[cold]
fn missing(key: &Bound<'_, PyAny>) -> PyErr {
    match key.repr() {
        Ok(key) => PyKeyError::new_err(format!("the graph has no key {key}")),
        Err(error) => error,
    }
}

/// A graph as it was read.
pub(super) struct Read {
    pub(super) calls: Vec<Task>,
    pub(super) values: Vec<Slot>,
    pub(super) wanted: Vec<(Py<PyAny>, u32)>,
    pub(super) needs: Vec<Few>,
}

pub(super) struct Reader<'a, 'py> {
    nodes: &'a Bound<'py, PyDict>,
    known: &'a Bound<'py, PyDict>,
    kinds: Kinds<'py>,
    pub(super) conversion: Conversion<'py>,
    /// Whether there are callbacks around each call, so that keys which only stand for others count, too.
    observed: bool,
    /// Entries by key.
    places: Bound<'py, PyDict>,
    entries: Vec<Entry<'py>>,
    read: Read,
}

impl<'a, 'py> Reader<'a, 'py> {
    pub(super) fn new(
        nodes: &'a Bound<'py, PyDict>,
        known: &'a Bound<'py, PyDict>,
        kinds: Kinds<'py>,
        conversion: Conversion<'py>,
        observed: bool,
    ) -> Self {
        let read = Read { calls: Vec::new(), values: Vec::new(), wanted: Vec::new(), needs: Vec::new() };
        let places = PyDict::new(nodes.py());
        Self { nodes, known, kinds, conversion, observed, places, entries: Vec::new(), read }
    }

    pub(super) fn read(mut self, wanted: &Bound<'py, PyList>) -> PyResult<Read> {
        let roots: PyResult<Vec<u32>> = wanted.iter().map(|key| self.entry(&key)).collect();
        for root in roots? {
            self.place(root)?;
            let entry = &self.entries[root as usize];
            self.read.values[entry.slot as usize].wanted = true;
            self.read.wanted.push((entry.key.clone().unbind(), entry.slot));
        }
        Ok(self.read)
    }

    /// Whether the graph has a key, or its value is known.
    pub(super) fn has(&self, key: &Bound<'py, PyAny>) -> PyResult<bool> {
        Ok(self.nodes.contains(key)? || !self.known.is_empty() && self.known.contains(key)?)
    }

    /// The value of another key.
    pub(super) fn reference(&mut self, key: &Bound<'py, PyAny>, needs: &mut Few) -> PyResult<Argument> {
        let entry = self.entry(key)?;
        needs.push(entry);
        Ok(Argument::Slot(entry))
    }

    /// The entry of a key.
    fn entry(&mut self, key: &Bound<'py, PyAny>) -> PyResult<u32> {
        if let Some(found) = self.places.get_item(key)? {
            return found.extract();
        }
        let place = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        self.places.set_item(key, place)?;
        self.entries.push(Entry {
            key: key.clone(),
            state: State::Named,
            slot: 0,
            call: None,
            work: None,
            needs: Few::new(),
        });
        Ok(place)
    }

    /// Places an entry and all its dependencies, each behind its own.
    fn place(&mut self, root: u32) -> PyResult<()> {
        if self.entries[root as usize].state != State::Named {
            return Ok(());
        }
        self.open(root)?;
        let mut path = vec![(root, 0)];
        while let Some((at, next)) = path.last_mut() {
            let entry = &self.entries[*at as usize];
            let Some(&needed) = entry.needs.get(*next) else {
                let at = *at;
                self.finish(at);
                path.pop();
                continue;
            };
            *next += 1;
            match self.entries[needed as usize].state {
                State::Placed => {}
                State::Named => {
                    self.open(needed)?;
                    path.push((needed, 0));
                }
                State::Open => return Err(self.cycle(&path, needed)),
            }
        }
        Ok(())
    }

    #[cold]
    fn cycle(&self, path: &[(u32, usize)], again: u32) -> PyErr {
        let keys = path.iter().map(|&(at, _)| at).skip_while(|&at| at != again);
        let keys: Vec<String> = keys.map(|at| format!("{:?}", self.entries[at as usize].key)).collect();
        PyRuntimeError::new_err(format!("the graph has a cycle: {}", keys.join(", ")))
    }

    /// Reads the kind and the dependencies of an entry.
    fn open(&mut self, at: u32) -> PyResult<()> {
        let key = self.entries[at as usize].key.clone();
        let (nodes, known) = (self.nodes, self.known);
        let mut needs = Few::new();
        let value = if known.is_empty() { None } else { known.get_item(&key)? };
        let work = if let Some(value) = value {
            Argument::Value(value.unbind())
        } else {
            let Some(node) = nodes.get_item(&key)? else { return Err(missing(&key)) };
            if node.is_exact_instance(&self.kinds.task) {
                self.call(&node, &mut needs)?
            } else if node.is_exact_instance(&self.kinds.data) {
                Argument::Value(node.getattr(intern!(node.py(), "value"))?.unbind())
            } else if node.is_exact_instance(&self.kinds.alias) {
                self.reference(&node.getattr(intern!(node.py(), "target"))?, &mut needs)?
            } else if node.is_instance(&self.kinds.any)? {
                self.node(node, &mut needs)?
            } else {
                match self.legacy(node, &mut needs)? {
                    Argument::Slot(target) if target == at => return Err(missing(&key)), // it stands for itself
                    work => work,
                }
            }
        };
        needs.sort_unstable();
        needs.dedup();
        let entry = &mut self.entries[at as usize];
        (entry.work, entry.needs, entry.state) = (Some(work), needs, State::Open);
        Ok(())
    }

    /// A task's call. Entries name its dependencies, until they have their places.
    fn call(&mut self, task: &Bound<'py, PyAny>, needs: &mut Few) -> PyResult<Argument> {
        let py = task.py();
        let _level = Level::enter(py)?;
        let given = task.getattr(intern!(py, "args"))?;
        let positional: PyResult<_> = given.cast::<PyTuple>()?.iter().map(|item| self.argument(item, needs)).collect();
        let given = task.getattr(intern!(py, "kwargs"))?;
        let given = given.cast::<PyDict>()?;
        let mut named = Vec::new();
        for (name, value) in given.iter() {
            named.push((name.unbind(), self.argument(value, needs)?));
        }
        let callable = task.getattr(intern!(py, "func"))?.unbind();
        Ok(Argument::Call(Box::new(Function { callable, positional: positional?, named })))
    }

    pub(super) fn argument(&mut self, value: Bound<'py, PyAny>, needs: &mut Few) -> PyResult<Argument> {
        let py = value.py();
        let kind = value.get_type();
        if kind.is(&self.kinds.reference) {
            return self.reference(&value.getattr(intern!(py, "key"))?, needs);
        }
        if kind.is(&self.kinds.list) {
            let _level = Level::enter(py)?;
            let items = value.getattr(intern!(py, "args"))?;
            let items: PyResult<Vec<_>> =
                items.cast::<PyTuple>()?.iter().map(|item| self.argument(item, needs)).collect();
            return Ok(Argument::List(items?));
        }
        if kind.is(&self.kinds.task) {
            return self.call(&value, needs);
        }
        // Most are numbers, texts and arrays, which need not be asked.
        if kind.is(pyo3::types::PyInt::type_object(py)) || !value.is_instance(&self.kinds.any)? {
            return Ok(Argument::Value(value.unbind()));
        }
        self.node(value, needs)
    }

    /// A node of a class that is not known here.
    fn node(&mut self, node: Bound<'py, PyAny>, needs: &mut Few) -> PyResult<Argument> {
        let mut asked = Vec::new();
        for key in node.getattr(intern!(node.py(), "dependencies"))?.try_iter()? {
            let key = key?;
            let entry = self.entry(&key)?;
            needs.push(entry);
            asked.push((key.unbind(), entry));
        }
        Ok(Argument::Node(Node { node: node.unbind(), needs: asked }))
    }

    /// Gives an entry, all of whose needs have theirs, its place.
    fn finish(&mut self, at: u32) {
        let place = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        let entry = &mut self.entries[at as usize];
        entry.state = State::Placed;
        let needs = std::mem::take(&mut entry.needs);
        let mut work = match entry.work.take() {
            Some(Argument::Value(value)) => {
                entry.slot = place(self.read.values.len());
                self.read.values.push(Slot { value: Some(value), ..Slot::default() });
                return;
            }
            Some(Argument::Slot(target)) if !self.observed => {
                let (slot, call) = (self.entries[target as usize].slot, self.entries[target as usize].call);
                let entry = &mut self.entries[at as usize];
                (entry.slot, entry.call) = (slot, call);
                return;
            }
            Some(work) => work,
            None => unreachable!("an entry is opened before it is finished"),
        };
        let slot = place(self.read.values.len());
        self.read.values.push(Slot::default());
        let key = entry.key.clone().unbind();
        (entry.slot, entry.call) = (slot, Some(place(self.read.calls.len())));
        let entries = &self.entries;
        let mut reads: Few = needs.iter().map(|&need| entries[need as usize].slot).collect();
        let mut calls: Few = needs.iter().filter_map(|&need| entries[need as usize].call).collect();
        for list in [&mut reads, &mut calls] {
            list.sort_unstable();
            list.dedup(); // two keys may stand for one value
        }
        for &slot in &reads {
            self.read.values[slot as usize].readers += 1;
        }
        self.number(&mut work);
        self.read.calls.push(Task { key, work, reads, slot });
        self.read.needs.push(calls);
    }

    /// Names values in place of entries.
    fn number(&self, argument: &mut Argument) {
        match argument {
            Argument::Value(_) => {}
            Argument::Slot(at) => *at = self.entries[*at as usize].slot,
            Argument::List(items) => items.iter_mut().for_each(|item| self.number(item)),
            Argument::Call(call) => {
                let named = call.named.iter_mut().map(|(_, value)| value);
                call.positional.iter_mut().chain(named).for_each(|item| self.number(item));
            }
            Argument::Node(Node { needs, .. }) => {
                needs.iter_mut().for_each(|(_, at)| *at = self.entries[*at as usize].slot);
            }
        }
    }
}
