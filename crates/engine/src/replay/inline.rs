//! A replay on the caller's thread, for a caller that knows that all accesses are granted.

use super::plan::{Plan, PortPlan};
use super::{Failures, Outcome, PortId, StepContext};
use crate::EngineError;
use crate::failure::{Cause, Failure};
use crate::quiet::{attempt, message_of, quietly};
use std::cell::RefCell;
use std::sync::Arc;

/// A port with a failed last change, in a replay that was run inline.
#[derive(Debug, Clone)]
pub struct PortFailure {
    /// The port.
    pub port: PortId,
    /// The failure of the step that failed first.
    pub failure: Arc<Failure>,
}

/// The failures of a replay that was run inline.
#[derive(Debug, Clone, Default)]
pub struct InlineFailures {
    /// Steps that failed, in their order; those that were skipped for that are not among them.
    pub steps: Vec<Arc<Failure>>,
    /// Ports with a failed last change.
    pub ports: Vec<PortFailure>,
}

impl Plan {
    /// Runs all steps in their order.
    ///
    /// # Safety
    ///
    /// The bindings are of the type that the steps were made for, and live for as long as the call.
    pub(crate) unsafe fn run_inline(&self, bindings: *const ()) -> Result<InlineFailures, EngineError> {
        if let Some(celled) = self.celled.first() {
            return Err(EngineError::InvalidArgument(format!(
                "{} is no plain step, so that the replay cannot run inline; push it",
                self.label_of(celled.step)
            )));
        }
        let mut failed = Failures::default();
        let mut failures = InlineFailures::default();
        for step in 0..self.step_count() {
            if !failed.is_empty() && !self.runs_always(step) {
                let cause = failed.first_of(self.needs.of(step));
                if let Some(cause) = cause {
                    // SAFETY: the caller's promise.
                    let skip = || unsafe { self.step(step).skipped(bindings) };
                    quietly(skip);
                    for member in self.members_of(step) {
                        failed.skipped(self.node_of(*member), Arc::clone(&cause));
                    }
                    failed.skipped(step, cause);
                    continue;
                }
            }
            if !failed.is_empty() {
                // SAFETY: the caller's promise.
                unsafe { self.leave_out(step, bindings, &mut failed) };
            }
            let of_members: RefCell<Vec<(u32, Cause)>> = RefCell::default();
            let fails = |member: usize, cause: Cause| {
                let Some(node) = self.members_of(step).get(member).map(|member| self.node_of(*member)) else {
                    return Vec::new();
                };
                of_members.borrow_mut().push((node, cause));
                self.places_behind(step, node)
            };
            let mut context = StepContext::new(None, None).failing(&fails);
            // SAFETY: the caller's promise.
            let run = || unsafe { self.step(step).run(bindings, &mut context) };
            let result = attempt(run);
            let result = result.unwrap_or_else(|panic| Err(Cause::Panic(message_of(panic))));
            let of_step = result.err().map(|cause| (step, cause));
            for (node, cause) in of_members.into_inner().into_iter().chain(of_step) {
                let failure = Arc::new(Failure::new(self.label_of(node), cause).at(self.place_of(node)));
                for member in self.members_behind(node) {
                    failed.left_out(self.node_of(member), &failure);
                }
                failed.failed(node, Arc::clone(&failure));
                failures.steps.push(failure);
            }
        }
        if !failed.is_empty() {
            failures.ports = self.failed_ports(&failed);
        }
        Ok(failures)
    }

    /// Tells a step which of its members are not to run.
    ///
    /// # Safety
    ///
    /// As for [`run_inline`](Self::run_inline).
    #[cold]
    unsafe fn leave_out(&self, step: u32, bindings: *const (), failed: &mut Failures) {
        for (at, member) in self.members_of(step).iter().enumerate() {
            let cause = failed.first_of(self.needs_of_member(*member));
            if let Some(cause) = cause {
                failed.skipped(self.node_of(*member), cause);
                // SAFETY: the caller's promise.
                quietly(|| unsafe { self.step(step).left_out(bindings, at) });
            }
        }
    }

    #[cold]
    fn failed_ports(&self, failed: &Failures) -> Vec<PortFailure> {
        let failure = |(at, port): (u32, &PortPlan)| match port.writers.outcome(failed) {
            Outcome::Failed { failure, .. } => Some(PortFailure { port: PortId(at), failure }),
            Outcome::Kept | Outcome::Overwritten => None,
        };
        (0..).zip(&self.ports).filter_map(failure).collect()
    }
}
