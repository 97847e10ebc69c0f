//! Types by the numbers that `MXNet`'s files write.

use super::DType;

const TYPES: [DType; 8] = [
    DType::Float32,
    DType::Float64,
    DType::Float16,
    DType::UInt8,
    DType::Int32,
    DType::Int8,
    DType::Int64,
    DType::Bool,
];

/// The type that `MXNet`'s files write as this number.
pub(crate) fn dtype_in_mxnet(number: usize) -> Option<DType> {
    TYPES.get(number).copied()
}

/// The number that `MXNet`'s files write for a type.
pub(crate) fn number_in_mxnet(dtype: DType) -> Option<usize> {
    TYPES.iter().position(|&each| each == dtype)
}
