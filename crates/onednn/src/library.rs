//! The library that was opened, once for the process, or why there is none.

use crate::sys::{CPU, Functions, Handle, IN_ORDER, SUCCESS, Version};
use std::cell::OnceCell;
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
    threads: Option<Threads>,
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

/// How many threads the calling thread's parallel regions take: OpenMP's functions that say and set it.
#[derive(Clone, Copy)]
struct Threads {
    most: unsafe extern "C" fn() -> c_int,
    set: unsafe extern "C" fn(c_int),
}

impl Threads {
    /// Those of the runtime that a library was linked with: a lookup in the library looks there, too.
    #[cfg(not(windows))]
    fn of(library: &libloading::Library) -> Option<Self> {
        Self::inside(library)
    }

    /// Those of the runtime that came with a library: on Windows a lookup looks into one file alone.
    #[cfg(windows)]
    fn of(_: &libloading::Library) -> Option<Self> {
        /// Microsoft's, LLVM's, Intel's and GCC's.
        const NAMES: [&str; 5] =
            ["vcomp140.dll", "libomp140.x86_64.dll", "libomp.dll", "libiomp5md.dll", "libgomp-1.dll"];
        NAMES.into_iter().find_map(|name| {
            let runtime = libloading::os::windows::Library::open_already_loaded(name).ok()?.into();
            let found = Self::inside(&runtime)?;
            std::mem::forget(runtime); // stays loaded, as its functions are kept
            Some(found)
        })
    }

    fn inside(library: &libloading::Library) -> Option<Self> {
        // SAFETY: the signatures are OpenMP's.
        let (most, set) =
            unsafe { (library.get(b"omp_get_max_threads\0").ok()?, library.get(b"omp_set_num_threads\0").ok()?) };
        Some(Self { most: *most, set: *set })
    }
}

/// For as long as it lives, the calling thread's parallel regions take no other thread. The number is the thread's, not the
/// library's: a caller's own regions have theirs back after.
#[must_use]
pub(crate) struct Alone(Option<(Threads, c_int)>);

impl Alone {
    fn of(threads: Option<Threads>) -> Self {
        Self(threads.and_then(|threads| {
            // SAFETY: it looks at a number of the calling thread's.
            let before = unsafe { (threads.most)() };
            if before == 1 {
                return None;
            }
            // SAFETY: it sets that number.
            unsafe { (threads.set)(1) };
            Some((threads, before))
        }))
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        if let Some((threads, before)) = self.0 {
            // SAFETY: it sets a number of the calling thread's.
            unsafe { (threads.set)(before) };
        }
    }
}

thread_local! {
    /// This thread's stream.
    static STREAM: OnceCell<Stream> = const { OnceCell::new() };
}

/// A stream of the opened library's.
struct Stream(Handle);

impl Drop for Stream {
    fn drop(&mut self) {
        if let Some(library) = library() {
            // SAFETY: it is not shared, and the thread, which ends, has waited for all that it ran.
            unsafe { (library.functions.stream_destroy)(self.0) };
        }
    }
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
        let threads = Threads::of(&library);
        std::mem::forget(library);
        let mut own = Self { functions, engine: ptr::null_mut(), threads, version: text, path: path.to_owned() };
        let _alone = own.alone();
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

    /// Until this is dropped, the library's work for this thread takes no others.
    pub(crate) fn alone(&self) -> Alone {
        Alone::of(self.threads)
    }

    /// This thread's stream.
    pub(crate) fn stream(&self) -> Result<Handle, i32> {
        STREAM.with(|known| {
            if let Some(stream) = known.get() {
                return Ok(stream.0);
            }
            let mut stream = ptr::null_mut();
            // SAFETY: the stream is written to; the engine is the library's.
            match unsafe { (self.functions.stream_create)(&raw mut stream, self.engine, IN_ORDER) } {
                SUCCESS => Ok(known.get_or_init(|| Stream(stream)).0),
                status => Err(status),
            }
        })
    }
}
