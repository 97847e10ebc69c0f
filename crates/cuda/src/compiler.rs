//! NVRTC, opened at run time: from CUDA C++ to an image that a device loads.

use libloading::Library;
use std::ffi::{CStr, CString, NulError, c_char, c_int, c_void};
use std::fmt;
use std::path::Path;
use std::ptr;

/// Why there is no image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// NVRTC cannot be used.
    #[error("NVRTC, CUDA's compiler, is not available: {reason}")]
    Unavailable {
        /// What is missing.
        reason: String,
    },
    /// The source is wrong, or an option.
    #[error("'{name}' cannot be compiled for {target}: {error}\n{log}")]
    Failed {
        /// What the source was called.
        name: String,
        /// The architecture.
        target: String,
        /// What NVRTC answered.
        error: String,
        /// What it has to say.
        log: String,
    },
}

/// An `nvrtcProgram`.
type Program = *mut c_void;
type Size = unsafe extern "C" fn(Program, *mut usize) -> c_int;
type Content = unsafe extern "C" fn(Program, *mut c_char) -> c_int;

/// The library. It is never unloaded, and its functions may be called from any thread.
pub struct Compiler {
    error: unsafe extern "C" fn(c_int) -> *const c_char,
    create: unsafe extern "C" fn(
        *mut Program,
        *const c_char,
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const c_char,
    ) -> c_int,
    destroy: unsafe extern "C" fn(*mut Program) -> c_int,
    compile: unsafe extern "C" fn(Program, c_int, *const *const c_char) -> c_int,
    image_size: Size,
    image: Content,
    log_size: Size,
    log: Content,
}

/// A program, destroyed when it goes.
struct Compiled<'c>(&'c Compiler, Program);

impl Drop for Compiled<'_> {
    fn drop(&mut self) {
        // SAFETY: made by `create`, and nobody else has it.
        unsafe { (self.0.destroy)(&raw mut self.1) };
    }
}

impl Compiler {
    /// Opens the first of these libraries that is there.
    pub fn open(paths: &[String]) -> Result<Self, CompileError> {
        let mut reasons = Vec::new();
        for path in paths {
            load_builtins(Path::new(path));
            // SAFETY: loading NVRTC runs its initialisers, which is what whoever compiles wants.
            match unsafe { Library::new(path) } {
                // SAFETY: the caller says that this is NVRTC.
                Ok(library) => return unsafe { Self::find(Box::leak(Box::new(library))) },
                Err(error) => reasons.push(error.to_string()),
            }
        }
        Err(CompileError::Unavailable { reason: reasons.join("; ") })
    }

    /// # Safety
    ///
    /// The library is NVRTC.
    unsafe fn find(library: &'static Library) -> Result<Self, CompileError> {
        macro_rules! symbol {
            ($name:literal) => {
                // SAFETY: NVRTC's function of this name has the type of the field that it goes to.
                *unsafe { library.get(concat!($name, "\0").as_bytes()) }
                    .map_err(|error| CompileError::Unavailable { reason: error.to_string() })?
            };
        }
        Ok(Self {
            error: symbol!("nvrtcGetErrorString"),
            create: symbol!("nvrtcCreateProgram"),
            destroy: symbol!("nvrtcDestroyProgram"),
            compile: symbol!("nvrtcCompileProgram"),
            image_size: symbol!("nvrtcGetCUBINSize"),
            image: symbol!("nvrtcGetCUBIN"),
            log_size: symbol!("nvrtcGetProgramLogSize"),
            log: symbol!("nvrtcGetProgramLog"),
        })
    }

    /// Compiles a source for devices of this compute capability.
    pub fn compile(
        &self,
        name: &str,
        source: &str,
        capability: (u32, u32),
        options: &[String],
    ) -> Result<Vec<u8>, CompileError> {
        let target = format!("sm_{}{}", capability.0, capability.1);
        let failed = |error: String, log: String| {
            let (name, target) = (name.to_owned(), target.clone());
            CompileError::Failed { name, target, error, log }
        };
        let text = |text: &str| CString::new(text).map_err(|error: NulError| failed(error.to_string(), String::new()));
        let architecture = format!("--gpu-architecture={target}");
        let (source, file) = (text(source)?, text(name)?);
        let options = options.iter().chain([&architecture]).map(|option| text(option));
        let options = options.collect::<Result<Vec<CString>, _>>()?;
        let pointers: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        let mut program = ptr::null_mut();
        // SAFETY: the texts end with a zero byte and outlive the call; there are no headers.
        let made =
            unsafe { (self.create)(&raw mut program, source.as_ptr(), file.as_ptr(), 0, ptr::null(), ptr::null()) };
        self.check(made).map_err(|error| failed(error, String::new()))?;
        let program = Compiled(self, program);
        let count = c_int::try_from(pointers.len()).unwrap_or(c_int::MAX);
        // SAFETY: the program lives, and there are so many options.
        let compiled = unsafe { (self.compile)(program.1, count, pointers.as_ptr()) };
        self.check(compiled).map_err(|error| {
            let log = self.content(&program, self.log_size, self.log).unwrap_or_default();
            failed(error, String::from_utf8_lossy(&log).trim_end_matches('\0').trim_end().to_owned())
        })?;
        self.content(&program, self.image_size, self.image).map_err(|error| failed(error, String::new()))
    }

    fn content(&self, program: &Compiled<'_>, size: Size, content: Content) -> Result<Vec<u8>, String> {
        let mut bytes = 0;
        // SAFETY: the program lives, and the size has a place.
        self.check(unsafe { size(program.1, &raw mut bytes) })?;
        let mut found = vec![0_u8; bytes];
        // SAFETY: there is room for as many bytes as it has said.
        self.check(unsafe { content(program.1, found.as_mut_ptr().cast()) })?;
        Ok(found)
    }

    fn check(&self, code: c_int) -> Result<(), String> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: it answers a text of its own, which lives as long as the library, for any code.
        let text = unsafe { CStr::from_ptr((self.error)(code)) };
        Err(format!("{} ({code})", text.to_string_lossy()))
    }
}

/// Loads the library of NVRTC's that it looks for by name when it compiles, where that lies beside it: releases differ
/// in whether they look there by themselves.
fn load_builtins(nvrtc: &Path) {
    let Some(folder) = nvrtc.parent().filter(|folder| folder.is_absolute()) else { return };
    let Ok(entries) = folder.read_dir() else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with("libnvrtc-builtins.so") || name.starts_with("nvrtc-builtins64_") {
            // SAFETY: it is a part of NVRTC, which whoever compiles wants.
            if let Ok(library) = unsafe { Library::new(entry.path()) } {
                std::mem::forget(library);
            }
        }
    }
}

impl fmt::Debug for Compiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compiler").finish_non_exhaustive()
    }
}
