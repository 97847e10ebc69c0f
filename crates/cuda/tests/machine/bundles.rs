//! Issues of bundles.

use std::sync::Arc;
use weft_cuda::{Bundle, CudaError, Issued, Member, Shifted};

/// Issues members, each of whose buffers is a place.
pub(crate) fn issue(bundle: &Bundle, members: &[Member]) -> Result<Issued, CudaError> {
    let mut places: Vec<Shifted> = Vec::new();
    for access in members.iter().flat_map(Member::accesses) {
        if !places.iter().any(|(buffer, _)| Arc::ptr_eq(buffer, &access.buffer)) {
            places.push((Arc::clone(&access.buffer), 0));
        }
    }
    bundle.issue(&places, &|| Some(members.to_vec()))
}

/// The same of all of them.
pub(crate) fn issue_all(bundle: &Bundle, members: &[Member]) -> Result<(), CudaError> {
    let Issued { count, refused } = issue(bundle, members)?;
    refused.map_or(Ok(()), Err)?;
    members[count..].iter().try_for_each(|member| member.issue().map(drop))
}
