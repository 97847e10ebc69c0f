//! One argument's part of a key.

use super::key::Key;
use crate::array::NDArray;
use crate::array::handle;
use crate::engine::Engine;
use crate::interpreter::errors;
use crate::interpreter::level::Level;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyBytes, PyComplex, PyDict, PyEllipsis, PyFloat, PyFrozenSet, PyInt, PyList, PyNone, PySlice, PyString,
    PyTuple, PyType,
};

/// The kind of a value, in the low byte of the word that begins it; a length or a flag is above.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Tag {
    Array,
    Host,
    None,
    Bool,
    Int,
    Float,
    Complex,
    List,
    Tuple,
    Named,
    Dict,
    Dataclass,
    Slice,
    Set,
    Number,
    Object,
}

/// The walk over one argument.
pub(super) struct KeyWriter<'key, 'py> {
    pub(super) key: &'key mut Key<'py>,
    pub(super) name: &'key dyn Fn() -> String,
    /// Whether the argument is static: objects count as themselves, and all of it must be hashable.
    pub(super) opaque: bool,
}

impl<'py> KeyWriter<'_, 'py> {
    /// A whole argument. Static ones must be hashable as a whole.
    #[inline]
    pub(super) fn argument(&mut self, value: &Bound<'py, PyAny>) -> PyResult<()> {
        self.add(value)?; // first: to hash a value that is nested too deeply ends the process
        if self.opaque && value.hash().is_err() {
            return Err(self.unhashable(value));
        }
        Ok(())
    }

    #[inline]
    fn word(&mut self, tag: Tag, more: u64) {
        self.key.words.push(tag as u64 | more << 8);
    }

    pub(super) fn add(&mut self, value: &Bound<'py, PyAny>) -> PyResult<()> {
        if let Ok(array) = value.cast_exact::<NDArray>() {
            self.array(array)?;
        } else if let Ok(number) = value.cast_exact::<PyFloat>() {
            self.word(Tag::Float, 0);
            self.key.words.push(number.value().to_bits());
        } else if let Ok(number) = value.cast_exact::<PyInt>() {
            self.integer(number);
        } else if let Ok(list) = value.cast_exact::<PyList>() {
            let _level = Level::enter(value.py())?;
            self.word(Tag::List, list.len() as u64);
            for item in list {
                self.add(&item)?;
            }
        } else if let Ok(tuple) = value.cast_exact::<PyTuple>() {
            self.items(Tag::Tuple, tuple)?;
        } else if let Ok(dict) = value.cast_exact::<PyDict>() {
            let _level = Level::enter(value.py())?;
            self.word(Tag::Dict, dict.len() as u64);
            for (name, item) in dict {
                self.add(&name)?;
                self.add(&item)?;
            }
        } else if value.is_exact_instance_of::<PyString>() || value.is_exact_instance_of::<PyBytes>() {
            self.object(value);
        } else if let Ok(truth) = value.cast_exact::<PyBool>() {
            self.word(Tag::Bool, u64::from(truth.is_true()));
        } else if value.is_exact_instance_of::<PyNone>() {
            self.word(Tag::None, 0);
        } else if let Ok(number) = value.cast_exact::<PyComplex>() {
            self.word(Tag::Complex, 0);
            for part in ["real", "imag"] {
                self.key.words.push(number.getattr(part)?.extract::<f64>()?.to_bits());
            }
        } else if let Ok(array) = value.cast::<NDArray>() {
            self.array(array)?; // of a subclass
        } else {
            self.rare(value)?;
        }
        Ok(())
    }

    /// Layout, dtype, device, permitted writes, and whether the tape knows it; its place in memory only as far as `overlaps` says.
    #[inline]
    fn array(&mut self, array: &Bound<'py, NDArray>) -> PyResult<()> {
        if self.opaque {
            return Err(self.unhashable(array.as_any())); // it is hashed by identity and not by its values
        }
        let now = array.get().stand_in(array.py());
        let own = now.as_ref().unwrap_or(array).get();
        let (inner, layout) = (&own.inner, own.inner.layout());
        let flags = u64::from(inner.buffer().is_readonly()) | u64::from(inner.buffer().is_elsewhere()) << 1;
        let flags = flags | handle::standing(array.py(), own)? << 2;
        let facts = inner.dtype() as u64 | flags << 8 | u64::from(inner.device()) << 16;
        self.word(Tag::Array, facts | (layout.shape.len() as u64) << 32);
        self.key.words.push(own.owner().as_ptr() as u64);
        self.key.words.extend(layout.shape.iter().map(|&length| length as u64));
        self.key.words.extend(layout.strides.iter().map(|&stride| stride.cast_unsigned() as u64));
        self.key.leaves.push(array.as_any().clone());
        Ok(())
    }

    #[inline]
    fn integer(&mut self, number: &Bound<'py, PyInt>) {
        if let Ok(small) = number.extract::<i64>() {
            self.word(Tag::Int, 0);
            self.key.words.push(small.cast_unsigned());
        } else {
            self.object(number.as_any());
        }
    }

    fn items(&mut self, tag: Tag, tuple: &Bound<'py, PyTuple>) -> PyResult<()> {
        let _level = Level::enter(tuple.py())?;
        self.word(tag, tuple.len() as u64);
        for item in tuple {
            self.add(&item)?;
        }
        Ok(())
    }

    /// A value that is compared by its type and by `==`.
    fn object(&mut self, value: &Bound<'py, PyAny>) {
        self.word(Tag::Object, value.get_type_ptr() as u64);
        self.key.objects.push(value.clone());
    }

    fn of_class(&mut self, tag: Tag, class: &Bound<'py, PyType>, length: usize) {
        self.word(tag, length as u64);
        self.key.objects.push(class.as_any().clone());
    }

    fn rare(&mut self, value: &Bound<'py, PyAny>) -> PyResult<()> {
        let py = value.py();
        if self.opaque && value.is_exact_instance_of::<Engine>() {
            self.object(value);
            return Ok(());
        }
        let numpy = Numpy::get(py)?;
        let class = value.get_type();
        if value.is_instance(numpy.array.bind(py))? {
            return self.host(value);
        }
        if value.is_instance(numpy.number.bind(py))? {
            // By its bytes: a NaN is itself, and -0.0 is not 0.0.
            self.of_class(Tag::Number, &class, 0);
            self.key.objects.push(value.getattr("dtype")?);
            self.key.objects.push(value.call_method0("tobytes")?);
            return Ok(());
        }
        if let Ok(number) = value.cast::<PyFloat>() {
            self.of_class(Tag::Float, &class, 1);
            self.key.words.push(number.value().to_bits());
            return Ok(());
        }
        if let Ok(slice) = value.cast::<PySlice>() {
            let _level = Level::enter(value.py())?;
            self.word(Tag::Slice, 0);
            for part in ["start", "stop", "step"] {
                self.add(&slice.getattr(part)?)?;
            }
            return Ok(());
        }
        if value.is_exact_instance_of::<PyEllipsis>() {
            self.object(value);
            return Ok(());
        }
        if let Ok(tuple) = value.cast::<PyTuple>()
            && class.hasattr("_fields")?
        {
            let _level = Level::enter(value.py())?;
            self.of_class(Tag::Named, &class, tuple.len());
            return tuple.iter().try_for_each(|item| self.add(&item));
        }
        if let Ok(set) = value.cast::<PyFrozenSet>() {
            let _level = Level::enter(value.py())?;
            self.of_class(Tag::Set, &class, set.len());
            return set.iter().try_for_each(|item| self.add(&item));
        }
        if let Ok(fields) = class.getattr("__dataclass_fields__") {
            let _level = Level::enter(value.py())?;
            let mut names = Vec::new();
            for (name, field) in fields.cast_into::<PyDict>()?.iter() {
                // `ClassVar` and `InitVar` are listed, too.
                if field.getattr(intern!(py, "_field_type"))?.is(numpy.field.bind(py)) {
                    names.push(name.cast_into::<PyString>()?);
                }
            }
            self.of_class(Tag::Dataclass, &class, names.len());
            return names.iter().try_for_each(|name| self.add(&value.getattr(name)?));
        }
        if !self.opaque && class.getattr("__hash__")?.is(numpy.identity.bind(py)) {
            return Err(self.of_identity(value));
        }
        if value.hash().is_err() {
            return Err(self.unhashable(value));
        }
        self.object(value);
        Ok(())
    }

    /// One of NumPy's arrays, which the call copies.
    fn host(&mut self, value: &Bound<'py, PyAny>) -> PyResult<()> {
        let (shape, strides) = (value.getattr("shape")?.cast_into::<PyTuple>()?, value.getattr("strides")?);
        let writeable: bool = value.getattr("flags")?.getattr("writeable")?.extract()?;
        self.word(Tag::Host, u64::from(writeable) | (shape.len() as u64) << 8);
        for numbers in [shape, strides.cast_into::<PyTuple>()?] {
            for number in numbers {
                self.key.words.push(number.extract::<i64>()?.cast_unsigned());
            }
        }
        self.key.objects.push(value.getattr("dtype")?);
        self.key.leaves.push(value.clone());
        self.key.hosts = true;
        Ok(())
    }

    fn of_identity(&self, value: &Bound<'py, PyAny>) -> PyErr {
        let (name, class) = ((self.name)(), class_name(value));
        errors::argument_type(
            value.py(),
            &format!(
                "{name} holds an object of type {class}, which is equal to itself alone: name the argument in \
                 static_argnames to record one program for each such object, or pass arrays, numbers and strings"
            ),
        )
    }

    fn unhashable(&self, value: &Bound<'py, PyAny>) -> PyErr {
        let (name, class) = ((self.name)(), class_name(value));
        let what = if self.opaque {
            "static, and a static argument is hashable by its value"
        } else {
            "no array, and it is not hashable"
        };
        errors::argument_type(
            value.py(),
            &format!(
                "{name}, of type {class}, is {what}: pass arrays, numbers, strings, or lists, tuples, dicts and dataclasses of them"
            ),
        )
    }
}

fn class_name(value: &Bound<'_, PyAny>) -> String {
    value.get_type().qualname().map_or_else(|_| "object".to_owned(), |name| name.to_string())
}

/// Classes and functions of NumPy and Python, looked up once.
struct Numpy {
    array: Py<PyAny>,
    number: Py<PyAny>,
    /// `object.__hash__`.
    identity: Py<PyAny>,
    /// The kind of fields that instances of a dataclass have.
    field: Py<PyAny>,
}

impl Numpy {
    fn get(py: Python<'_>) -> PyResult<&'static Self> {
        static KNOWN: PyOnceLock<Numpy> = PyOnceLock::new();
        KNOWN.get_or_try_init(py, || {
            let numpy = py.import("numpy")?;
            let object = py.import("builtins")?.getattr("object")?;
            Ok(Self {
                array: numpy.getattr("ndarray")?.unbind(),
                number: numpy.getattr("generic")?.unbind(),
                identity: object.getattr("__hash__")?.unbind(),
                field: py.import("dataclasses")?.getattr("_FIELD")?.unbind(),
            })
        })
    }
}
