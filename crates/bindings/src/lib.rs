//! The extension module `weft._core`: translates between `CPython` and `weft-engine`.
//!
//! Every function here reads its arguments, calls the engine (without the GIL where that may wait), and turns the answer back
//! into Python. It decides the way of a call: its loop and its destination, whether it runs here or is pushed, which program
//! serves it, what the tape hears. It decides who has the GIL. Order is the engine's.

// The doc comments are docstrings for Python: numpydoc, not Markdown.
#![allow(clippy::doc_markdown)]

mod array;
mod call;
mod cuda;
mod dask;
mod engine;
mod face;
mod graph;
mod hearing;
mod interpreter;
mod mpi;
mod payloads;
mod program;
mod pushes;
mod signature;
mod tape;

use pyo3::prelude::*;
use pyo3::types::PyTuple;

#[cfg(not(sanitized))] // a sanitizer knows the blocks of the system alone
#[global_allocator]
static ALLOCATOR: interpreter::allocator::Allocator = interpreter::allocator::Allocator;

/// Scheduler, variables and ops; see the package `weft`.
#[pymodule(gil_used = false)]
mod _core {
    #[pymodule_export]
    use super::array::NDArray;
    #[pymodule_export]
    use super::array::moves::tape_standings;
    #[pymodule_export]
    use super::call::indexing::set_indexing;
    #[pymodule_export]
    use super::call::{Callee, Native, Plan, Way, set_carrier, set_composer, set_dispatch, way_of};
    #[pymodule_export]
    use super::cuda::elementwise::{CudaLoop, cache_cuda_loop};
    #[pymodule_export]
    use super::cuda::floors::{BareLaunch, cuda_wait_issued};
    #[pymodule_export]
    use super::cuda::hosted::{DeviceMemory, cuda_current_stream};
    #[pymodule_export]
    use super::cuda::interop::{cuda_export, cuda_wrap};
    #[pymodule_export]
    use super::cuda::kernel::RawKernel;
    #[pymodule_export]
    use super::cuda::memory::{cuda_empty, cuda_empty_pinned};
    #[pymodule_export]
    use super::cuda::parameters::{_mutate, _overwrite, _read, Declared};
    #[pymodule_export]
    use super::cuda::runtime::{
        cuda_compile, cuda_compiler_version, cuda_device_count, cuda_memory_stats, cuda_properties, cuda_synchronize,
        cuda_trim,
    };
    #[pymodule_export]
    use super::cuda::transfers::cuda_copy;
    #[pymodule_export]
    use super::dask::TaskGraph;
    #[pymodule_export]
    use super::engine::Engine;
    #[pymodule_export]
    use super::engine::stand_in::StandIn;
    #[pymodule_export]
    use super::engine::variable::Variable;
    #[pymodule_export]
    use super::face::nested::Nested;
    #[pymodule_export]
    use super::face::process::{_all_stats, _exit_drain};
    #[pymodule_export]
    use super::face::recover::_recover;
    #[pymodule_export]
    use super::face::scope::Scope;
    #[pymodule_export]
    use super::face::status::_exit_failed;
    #[pymodule_export]
    use super::face::watch::{
        _are_finite, _fingerprint, _keep, _place, _put_back, _watch, _watch_drain, _watch_origins,
    };
    #[pymodule_export]
    use super::graph::calls::{GraphCall, graph_calls};
    #[pymodule_export]
    use super::graph::graphs::{GraphCore, PyIndexedGraph};
    #[pymodule_export]
    use super::graph::nodes::{PyNode, PyNodeEntry};
    #[pymodule_export]
    use super::graph::passes::{
        graph_apply_pass, graph_correct_layout, graph_describe_derived, graph_draw, graph_find_pass,
        graph_fold_constants, graph_functionalise, graph_gradient, graph_infer_shape, graph_infer_type, graph_inferred,
        graph_list_passes, graph_load_json, graph_place_device, graph_plan_memory, graph_print_ir, graph_recompute,
        graph_register_pass, graph_save_json,
    };
    #[pymodule_export]
    use super::graph::plan::plan_offsets;
    #[pymodule_export]
    use super::graph::registry::{GroupEntry, OpEntry, all_ops, canonical_key, find_op};
    #[pymodule_export]
    use super::graph::shape_rule::ShapeRule;
    #[pymodule_export]
    use super::graph::symbols::SymbolCore;
    #[pymodule_export]
    use super::graph::values::{Operand, common_shape, format_value, layout_axes, parse_value};
    #[pymodule_export]
    use super::hearing::record::{
        bare, tape_apart, tape_check_target, tape_entry, tape_forget, tape_hears, tape_hears_all, tape_keep, tape_leaf,
        tape_note, tape_note_call, tape_opens, whole,
    };
    #[pymodule_export]
    use super::hearing::short::{tape_hear_part, tape_hear_view, tape_note_fresh, tape_operator};
    #[pymodule_export]
    use super::hearing::tape_alike;
    #[pymodule_export]
    use super::interpreter::forks::{_after_fork_child, _after_fork_parent, _before_fork, _watch_forks};
    #[pymodule_export]
    use super::mpi::{MpiCommunicator, MpiLibrary};
    #[pymodule_export]
    use super::payloads::answering::Answering;
    #[pymodule_export]
    use super::payloads::completion::Completion;
    #[pymodule_export]
    use super::program::{Compiled, Part, Recording, note_call, open_recording, recorded_calls, unrecorded};
    #[pymodule_export]
    use super::pushes::kinds::kind_empty;
    #[pymodule_export]
    use super::pushes::{
        Kernel, Loop, Memory, Operator, beside, change_here, compute_here, copy_elements, empty, fresh_copy,
        fresh_diagonal, fresh_filled, fresh_range, fresh_spaced, memory_stats, memory_trim, open_onednn, push_compute,
        values_here, vectors, wrap,
    };
    #[pymodule_export]
    use super::pushes::{
        kernel_cells, kernel_cross_entropy, kernel_layer_norm, kernel_lookup, kernel_mask, kernel_neighbours,
        kernel_sequence, kernel_sort,
    };
    #[pymodule_export]
    use super::signature::{Signatures, is_eager};
    #[pymodule_export]
    use super::tape::listen::{tape_mode, tape_pause, tape_paused, tape_surroundings};
    #[pymodule_export]
    use super::tape::node::TapeNode;
    #[pymodule_export]
    use super::tape::outline::Outline;
    #[pymodule_export]
    use super::tape::patch::tape_patch;
    #[pymodule_export]
    use super::tape::walk::tape_walk;

    use super::{Bound, PyModule, PyModuleMethods, PyResult, PyTuple};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::call::add_call(module)?;
        super::call::add_array_function(module)?;
        super::interpreter::errors::load(module.py())?;
        super::interpreter::devices::add("cuda", || &super::cuda::Cuda);
        super::interpreter::exceptions::load(module.py());
        super::interpreter::location::load(module.py());
        super::interpreter::loose::load(module.py());
        module.add("TAPE_ELSEWHERE", super::hearing::record::Hearing::Elsewhere)?;
        module.add("POLICIES", PyTuple::new(module.py(), weft_engine::Policy::forms())?)?;
        module.add("_FIRST_CUDA_DEVICE", weft_device::FIRST_DEVICE)?;
        module.add("_target", env!("WEFT_TARGET"))?;
        module.add("_debug_build", cfg!(debug_assertions))
    }
}
