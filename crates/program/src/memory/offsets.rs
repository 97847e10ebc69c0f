//! Offsets for temporaries that live for a while.

use crate::ProgramError;
use weft_plan::Options;

/// Alignment of temporaries: a cache line.
const ALIGNMENT: u64 = 64;

/// Something that lies somewhere from the instruction `first` to `last`, both included.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Life {
    pub(crate) first: usize,
    pub(crate) last: usize,
    pub(crate) bytes: usize,
}

#[allow(clippy::cast_possible_wrap)] // numbers of instructions
fn moment(at: usize) -> i64 {
    at as i64
}

/// Offsets for these, and their extent.
pub(crate) fn place(lives: &[Life]) -> Result<(Vec<usize>, usize), ProgramError> {
    Ok(place_apart(lives, &[], usize::MAX)?.unwrap_or_default())
}

/// The same, where these pairs of lives share nothing either; None if there are too many to compare. Where no extent can be less
/// than `below`, any will do.
#[allow(clippy::cast_possible_truncation)] // sizes came from this machine
pub(crate) fn place_apart(
    lives: &[Life],
    apart: &[(usize, usize)],
    below: usize,
) -> Result<Option<(Vec<usize>, usize)>, ProgramError> {
    let lower: Vec<i64> = lives.iter().map(|life| moment(life.first)).collect();
    let upper: Vec<i64> = lives.iter().map(|life| moment(life.last) + 1).collect();
    let sizes: Vec<u64> = lives.iter().map(|life| life.bytes as u64).collect();
    let options = Options { alignment: ALIGNMENT, below: Some(below as u64), ..Options::default() };
    let Some(placed) = weft_plan::plan_offsets_apart(&lower, &upper, &sizes, apart, &options)? else { return Ok(None) };
    let offsets: Vec<usize> = placed.offsets.iter().map(|offset| *offset as usize).collect();
    let extent = offsets.iter().zip(lives).map(|(offset, life)| offset + life.bytes).max().unwrap_or(0);
    Ok(Some((offsets, extent)))
}
