//! The library that was opened, once for the process, or why there is none.

use crate::sys::{CPU, Functions, Handle, IN_ORDER, SUCCESS, Version};
use std::cell::Cell;
use std::ffi::c_int;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::OnceLock;

/// Why oneDNN is not used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unavailable {
    /// It was switched off.
    Off,
    /// No file of it could be opened.
    Missing,
    /// It is of another major version.
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: String,
    },
    /// It lacks something, or refused to begin.
    Refused {
        /// The file.
        path: PathBuf,
        /// What it said.
        reason: String,
    },
}

impl std::fmt::Display for Unavailable {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Off => write!(to, "switched off"),
            Self::Missing => write!(to, "not found"),
            Self::Version { path, version } => {
                write!(to, "{} is version {version}, and version 3 is needed", path.display())
            }
            Self::Refused { path, reason } => write!(to, "{}: {reason}", path.display()),
        }
    }
}

/// oneDNN, open until the process ends.
pub struct Library {
    pub(crate) functions: Functions,
    pub(crate) engine: Handle,
    /// Of the OpenMP runtime that it uses.
    threads: Option<unsafe extern "C" fn(c_int)>,
    version: String,
    path: PathBuf,
}

// SAFETY: the functions may be called from any thread, and an engine of the CPU is not changed by its use.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

static LIBRARY: OnceLock<Result<Library, Unavailable>> = OnceLock::new();

/// The library, if it was opened.
#[must_use]
pub fn library() -> Option<&'static Library> {
    LIBRARY.get().and_then(|opened| opened.as_ref().ok())
}

/// Opens the first of these files that is there, once for the process.
pub fn open(paths: &[PathBuf]) -> Result<&'static Library, Unavailable> {
    let opened = LIBRARY.get_or_init(|| {
        if paths.is_empty() {
            return Err(Unavailable::Off);
        }
        let mut refused = Unavailable::Missing;
        for path in paths {
            match Library::open(path) {
                Ok(library) => return Ok(library),
                Err(Unavailable::Missing) => {}
                Err(other) => refused = other,
            }
        }
        Err(refused)
    });
    opened.as_ref().map_err(Clone::clone)
}

thread_local! {
    /// Whether this thread's executions take one thread.
    static ALONE: Cell<bool> = const { Cell::new(false) };
    /// This thread's stream, which lives as long as the library does.
    static STREAM: Cell<Handle> = const { Cell::new(ptr::null_mut()) };
}

impl Library {
    fn open(path: &Path) -> Result<Self, Unavailable> {
        let refused = |reason: String| Unavailable::Refused { path: path.to_owned(), reason };
        // SAFETY: a library is run when it is opened; the user has named it, or its installer has put it there.
        let library = unsafe { libloading::Library::new(path) }.map_err(|_| Unavailable::Missing)?;
        // SAFETY: all versions since 1.0 have this function, which answers a structure that begins so.
        let version = unsafe {
            let ask = library
                .get::<unsafe extern "C" fn() -> *const Version>(b"dnnl_version\0")
                .map_err(|_| refused("it is not oneDNN: it has no function dnnl_version".to_owned()))?;
            &*ask()
        };
        let text = format!("{}.{}.{}", version.major, version.minor, version.patch);
        if version.major != 3 {
            return Err(Unavailable::Version { path: path.to_owned(), version: text });
        }
        // SAFETY: it is oneDNN's, version 3, and is never closed.
        let functions = unsafe { Functions::of(&library) }.map_err(refused)?;
        // SAFETY: the signature is OpenMP's.
        let threads = unsafe { library.get::<unsafe extern "C" fn(c_int)>(b"omp_set_num_threads\0") };
        let threads = threads.ok().map(|function| *function);
        std::mem::forget(library);
        let mut own = Self { functions, engine: ptr::null_mut(), threads, version: text, path: path.to_owned() };
        own.alone();
        // SAFETY: the engine is written to.
        let status = unsafe { (own.functions.engine_create)(&raw mut own.engine, CPU, 0) };
        if status != SUCCESS {
            return Err(refused(format!("dnnl_engine_create answered {status}")));
        }
        Ok(own)
    }

    /// Its version: "3.2.0".
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The file that was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// From now on executions of this thread take no others.
    pub(crate) fn alone(&self) {
        if !ALONE.replace(true)
            && let Some(threads) = self.threads
        {
            // SAFETY: it sets a number of the calling thread's.
            unsafe { threads(1) };
        }
    }

    /// This thread's stream.
    pub(crate) fn stream(&self) -> Result<Handle, i32> {
        let known = STREAM.get();
        if !known.is_null() {
            return Ok(known);
        }
        let mut stream = ptr::null_mut();
        // SAFETY: the stream is written to; the engine is the library's.
        match unsafe { (self.functions.stream_create)(&raw mut stream, self.engine, IN_ORDER) } {
            SUCCESS => {
                STREAM.set(stream);
                Ok(stream)
            }
            status => Err(status),
        }
    }
}
