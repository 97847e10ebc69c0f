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
        /// The name of the source.
        name: String,
        /// The architecture.
        target: String,
        /// What NVRTC answered.
        error: String,
        /// Its words.
        log: String,
    },
}

/// Headers that C++ programs expect and NVRTC does not have. CUDA's own headers say the same of these types.
const HEADERS: [(&CStr, &CStr); 2] = [(c"stdint.h", STDINT), (c"cstdint", c"#include <stdint.h>\n")];
const STDINT: &CStr = c"#pragma once
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
typedef long long intptr_t;
typedef unsigned long long uintptr_t;
#define INT8_MAX 127
#define UINT8_MAX 255
#define INT16_MAX 32767
#define UINT16_MAX 65535
#define INT32_MAX 2147483647
#define UINT32_MAX 4294967295u
#define INT64_MAX 9223372036854775807ll
#define UINT64_MAX 18446744073709551615ull
#define INT8_MIN (-INT8_MAX - 1)
#define INT16_MIN (-INT16_MAX - 1)
#define INT32_MIN (-INT32_MAX - 1)
#define INT64_MIN (-INT64_MAX - 1)
";

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
    text_size: Size,
    text: Content,
    log_size: Size,
    log: Content,
    /// Of CUDA: major, minor.
    version: (u32, u32),
    /// The architectures that it knows, as 90 for 9.0, in order; none if it does not say.
    architectures: Vec<u32>,
}

/// Options of a caller that name an architecture.
const ARCHITECTURE: [&str; 2] = ["--gpu-architecture", "-arch"];

/// The architecture that options name, if any does: followed by `=` and its name, or by that as another option.
fn named_in(options: &[String]) -> Option<&str> {
    options.iter().zip(options.iter().skip(1).map(Some).chain([None])).find_map(|(option, next)| {
        let rest = ARCHITECTURE.iter().find_map(|name| option.strip_prefix(name))?;
        rest.strip_prefix('=').or_else(|| next.filter(|_| rest.is_empty()).map(String::as_str))
    })
}

/// A program, destroyed when it goes.
struct Compiled<'c>(&'c Compiler, Program);

impl Drop for Compiled<'_> {
    fn drop(&mut self) {
        // SAFETY: made by `create`, and not shared.
        unsafe { (self.0.destroy)(&raw mut self.1) };
    }
}

impl Compiler {
    /// Opens the first of these libraries that is there.
    pub fn open(paths: &[String]) -> Result<Self, CompileError> {
        let mut reasons = Vec::new();
        for path in paths {
            load_builtins(Path::new(path));
            // SAFETY: loading NVRTC runs its initialisers, as a compilation asks for.
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
        let version: unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int = symbol!("nvrtcVersion");
        let counted: unsafe extern "C" fn(*mut c_int) -> c_int = symbol!("nvrtcGetNumSupportedArchs");
        let listed: unsafe extern "C" fn(*mut c_int) -> c_int = symbol!("nvrtcGetSupportedArchs");
        let (mut major, mut minor, mut count) = (0, 0, 0);
        // SAFETY: the numbers have places; NVRTC lists as many as it has counted.
        let architectures: Vec<c_int> = unsafe {
            version(&raw mut major, &raw mut minor);
            counted(&raw mut count);
            let mut found = vec![0; usize::try_from(count).unwrap_or(0)];
            if listed(found.as_mut_ptr()) == 0 { found } else { Vec::new() }
        };
        let number = |number: c_int| u32::try_from(number).unwrap_or(0);
        Ok(Self {
            version: (number(major), number(minor)),
            architectures: architectures.into_iter().map(number).collect(),
            error: symbol!("nvrtcGetErrorString"),
            create: symbol!("nvrtcCreateProgram"),
            destroy: symbol!("nvrtcDestroyProgram"),
            compile: symbol!("nvrtcCompileProgram"),
            image_size: symbol!("nvrtcGetCUBINSize"),
            image: symbol!("nvrtcGetCUBIN"),
            text_size: symbol!("nvrtcGetPTXSize"),
            text: symbol!("nvrtcGetPTX"),
            log_size: symbol!("nvrtcGetProgramLogSize"),
            log: symbol!("nvrtcGetProgramLog"),
        })
    }

    /// The version of CUDA that it belongs to: major, minor.
    #[must_use]
    pub const fn version(&self) -> (u32, u32) {
        self.version
    }

    /// The target for devices of this compute capability, and whether it is code for exactly these: for devices newer than
    /// this compiler it is PTX, which the driver compiles further.
    fn target(&self, (major, minor): (u32, u32)) -> (String, bool) {
        let wanted = major * 10 + minor;
        if self.architectures.is_empty() || self.architectures.contains(&wanted) {
            return (format!("sm_{wanted}"), true);
        }
        match self.architectures.iter().rev().find(|known| **known < wanted) {
            Some(known) => (format!("compute_{known}"), false),
            None => (format!("sm_{wanted}"), true),
        }
    }

    /// Compiles a source for devices of this compute capability, or for the architecture that the options name, such as
    /// `sm_90a` with instructions that no later devices have.
    pub fn compile(
        &self,
        name: &str,
        source: &str,
        capability: (u32, u32),
        options: &[String],
    ) -> Result<Vec<u8>, CompileError> {
        let chosen = named_in(options);
        let (target, exact) = match chosen {
            Some(chosen) => (chosen.to_owned(), !chosen.starts_with("compute_")),
            None => self.target(capability),
        };
        let failed = |error: String, log: String| {
            let (name, target) = (name.to_owned(), target.clone());
            CompileError::Failed { name, target, error, log }
        };
        let text = |text: &str| CString::new(text).map_err(|error: NulError| failed(error.to_string(), String::new()));
        let architecture = format!("--gpu-architecture={target}");
        let (source, file) = (text(source)?, text(name)?);
        let own = chosen.is_none().then_some(&architecture);
        let options = options.iter().chain(own).map(|option| text(option));
        let options = options.collect::<Result<Vec<CString>, _>>()?;
        let pointers: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        let mut program = ptr::null_mut();
        let (names, headers) = (HEADERS.map(|(name, _)| name.as_ptr()), HEADERS.map(|(_, text)| text.as_ptr()));
        let count = c_int::try_from(HEADERS.len()).unwrap_or(0);
        // SAFETY: the texts end with a zero byte and outlive the call; there are so many headers, each with its name.
        let made = unsafe {
            let (headers, names) = (headers.as_ptr(), names.as_ptr());
            (self.create)(&raw mut program, source.as_ptr(), file.as_ptr(), count, headers, names)
        };
        self.check(made).map_err(|error| failed(error, String::new()))?;
        let program = Compiled(self, program);
        let count = c_int::try_from(pointers.len()).unwrap_or(c_int::MAX);
        // SAFETY: the program lives, and there are so many options.
        let compiled = unsafe { (self.compile)(program.1, count, pointers.as_ptr()) };
        self.check(compiled).map_err(|error| {
            let log = self.content(&program, self.log_size, self.log).unwrap_or_default();
            failed(error, String::from_utf8_lossy(&log).trim_end_matches('\0').trim_end().to_owned())
        })?;
        let (size, content) = if exact { (self.image_size, self.image) } else { (self.text_size, self.text) };
        self.content(&program, size, content).map_err(|error| failed(error, String::new()))
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
            // SAFETY: it is a part of NVRTC, as a compilation asks for.
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
