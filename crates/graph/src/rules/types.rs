//! Dtypes.

use super::refuse;
use crate::registry::{Call, RuleError};
use crate::value::DType;

/// All inputs and outputs have one dtype.
pub(super) fn same(_: &Call<'_>, ins: &mut [Option<DType>], outs: &mut [Option<DType>]) -> Result<(), RuleError> {
    let mut known = ins.iter().chain(outs.iter()).flatten().copied();
    let Some(first) = known.next() else { return Ok(()) };
    if let Some(other) = known.find(|&each| each != first) {
        return refuse(format!("dtypes {first} and {other} differ, and the op wants them equal"));
    }
    ins.iter_mut().chain(outs.iter_mut()).for_each(|dtype| *dtype = Some(first));
    Ok(())
}

/// Each output has the dtype of the first input.
pub(super) fn like_first(_: &Call<'_>, ins: &mut [Option<DType>], outs: &mut [Option<DType>]) -> Result<(), RuleError> {
    let Some(first) = ins.first_mut() else { return Ok(()) };
    let known = first.or_else(|| outs.iter().flatten().next().copied());
    if let (Some(known), Some(other)) = (known, outs.iter().flatten().find(|&&each| Some(each) != known)) {
        return refuse(format!("dtypes {known} and {other} differ: the result has that of the first operand"));
    }
    *first = known;
    outs.iter_mut().for_each(|out| *out = known);
    Ok(())
}

/// Results are truth values.
#[allow(clippy::unnecessary_wraps)] // a rule like others, which may fail
pub(super) fn truth(_: &Call<'_>, _: &mut [Option<DType>], outs: &mut [Option<DType>]) -> Result<(), RuleError> {
    outs.iter_mut().for_each(|out| *out = Some(DType::Bool));
    Ok(())
}
