//! Arguments as words and objects.

use super::leaves::KeyWriter;
use super::overlaps;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use smallvec::SmallVec;

/// The surroundings of a call.
#[derive(Default)]
pub(super) struct Around<'py> {
    /// Whether the tape listens, and whether layers train.
    pub(super) tape: u8,
    /// The default engine, if there is one.
    pub(super) engine: Option<Bound<'py, PyAny>>,
}

/// The parts of a call that a program depends on: words, and objects that only Python can compare.
pub(super) struct Key<'py> {
    pub(super) words: SmallVec<[u64; 64]>,
    pub(super) objects: SmallVec<[Bound<'py, PyAny>; 4]>,
    /// Arrays, weft's and NumPy's, in the order of the walk.
    pub(super) leaves: SmallVec<[Bound<'py, PyAny>; 8]>,
    /// Whether some of them are NumPy's.
    pub(super) hosts: bool,
    hash: u64,
}

/// A key that is kept.
pub(super) struct Kept {
    words: Box<[u64]>,
    pub(super) objects: Vec<Py<PyAny>>,
    pub(super) hash: u64,
}

impl<'py> Key<'py> {
    fn empty() -> Self {
        let (words, objects, leaves) = (SmallVec::new(), SmallVec::new(), SmallVec::new());
        Self { words, objects, leaves, hosts: false, hash: 0 }
    }

    /// The key of a call with these arguments, in the order of the parameters. A program of a call that trains, or that the
    /// tape listens to, is no program of one that does not.
    pub(super) fn of(
        arguments: &[Bound<'py, PyAny>],
        statics: &[bool],
        name: &dyn Fn(usize) -> String,
        around: &Around<'py>,
    ) -> PyResult<Self> {
        let mut key = Self::empty();
        key.words.push(around.tape.into());
        if let Some(engine) = &around.engine {
            KeyWriter { key: &mut key, name: &|| "the surroundings of the call".to_owned(), opaque: true }
                .add(engine)?;
        }
        for (at, value) in arguments.iter().enumerate() {
            let opaque = statics.get(at).copied().unwrap_or(false);
            KeyWriter { key: &mut key, name: &|| name(at), opaque }.argument(value)?;
        }
        overlaps::among(&mut key);
        key.hash = key.hashed()?;
        Ok(key)
    }

    /// The part of one argument in a key, for Python to compare: bytes and objects.
    pub(super) fn part(value: &Bound<'py, PyAny>, opaque: bool, name: &dyn Fn() -> String) -> PyResult<Py<PyTuple>> {
        let mut key = Self::empty();
        KeyWriter { key: &mut key, name, opaque }.argument(value)?;
        let py = value.py();
        let objects = PyTuple::new(py, &key.objects)?;
        let bytes: Vec<u8> = key.words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        Ok((pyo3::types::PyBytes::new(py, &bytes), objects).into_pyobject(py)?.unbind())
    }

    pub(super) fn hash(&self) -> u64 {
        self.hash
    }

    fn hashed(&self) -> PyResult<u64> {
        let mut hash = 0_u64;
        for &word in &self.words {
            hash = mixed(hash, word);
        }
        for object in &self.objects {
            hash = mixed(hash, object.hash()?.cast_unsigned() as u64);
        }
        Ok(hash)
    }

    pub(super) fn keep(&self) -> Kept {
        Kept {
            words: self.words.as_slice().into(),
            objects: self.objects.iter().map(|object| object.clone().unbind()).collect(),
            hash: self.hash,
        }
    }
}

impl Kept {
    /// Whether a call of this key is one of the kept key.
    pub(super) fn is(&self, key: &Key<'_>) -> PyResult<bool> {
        if *self.words != *key.words || self.objects.len() != key.objects.len() {
            return Ok(false);
        }
        for (kept, given) in self.objects.iter().zip(&key.objects) {
            let kept = kept.bind(given.py());
            if !(kept.is(given) || kept.get_type().is(given.get_type()) && kept.eq(given)?) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// As `rustc` hashes its own tables: keys are not an attacker's.
#[inline]
fn mixed(hash: u64, word: u64) -> u64 {
    (hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95)
}
