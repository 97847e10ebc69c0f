//! The errors of a request.

use crate::tuple::Tuple;
use weft_engine::EngineError;

/// Why an operation on arrays was refused. Nothing was pushed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArrayError {
    /// The engine refused it.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// An operand cannot be broadcast to the shape of the result.
    #[error("operands could not be broadcast together: shape {} does not fit {}", Tuple(from), Tuple(to))]
    Broadcast {
        /// The operand's shape.
        from: Vec<usize>,
        /// The result's shape.
        to: Vec<usize>,
    },
    /// A view would reach outside its buffer.
    #[error("the view reaches bytes {start}..{end} of a buffer of {bytes} bytes")]
    OutOfBounds {
        /// First byte.
        start: i128,
        /// Byte behind the last.
        end: i128,
        /// The buffer's size.
        bytes: usize,
    },
    /// The array is larger than memory can be.
    #[error("an array of shape {} with elements of {item} bytes is too large", Tuple(shape))]
    TooLarge {
        /// The shape asked for.
        shape: Vec<usize>,
        /// Bytes of an element.
        item: usize,
    },
    /// The array's memory must not be written to.
    #[error("the array is read-only")]
    ReadOnly,
    /// The op that runs on this thread was granted the array, and its own pushes would come too late.
    #[error(
        "the running op has this array of shape {} among its accesses, and ops that it pushes on it would come \
         after all that was pushed since: compute with its values instead, as numpy.asarray() gives them inside the op",
        Tuple(shape)
    )]
    Granted {
        /// The array's shape.
        shape: Vec<usize>,
    },
    /// The op needs the host's memory, and the array is on a device.
    #[error("the array is on {device} and the op runs on the CPU: copy the array there by x.to_device(\"cpu\")")]
    Elsewhere {
        /// The device.
        device: String,
    },
    /// The op needs the memory of a device, and the array is on the host.
    #[error(
        "an array of shape {} is on the CPU, and the op runs on a CUDA device: copy the array there by \
         x.to_device(weft.gpu(i))",
        Tuple(shape)
    )]
    OnHost {
        /// The array's shape.
        shape: Vec<usize>,
    },
    /// The array has a place in a recording alone.
    #[error(
        "the array belongs to the recording '{recording}': it has no value outside of its replays; return it from the \
         recorded function, or write to an array that was there before"
    )]
    Recorded {
        /// The recording's name.
        recording: String,
    },
    /// The array's memory was given to a call of a program.
    #[error(
        "the array's memory was given away to a call of the program '{call}', which was told so by donate=: use what that \
         call returned, or give it a copy"
    )]
    GivenAway {
        /// The program's name.
        call: String,
    },
    /// The op cannot be recorded.
    #[error("{0}")]
    Capture(String),
    /// The operands do not suit the operation.
    #[error("{0}")]
    Invalid(String),
}
