//! Products of matrices.

use super::{broadcast, learn, refuse, refuse_type};
use crate::registry::RuleError;
use crate::value::{Attributes, Shape, UNKNOWN};

/// Stacks of matrices; an operand of one axis is a row or a column.
pub(super) fn matmul(attributes: &Attributes, ins: &mut [Shape], outs: &mut [Shape]) -> Result<(), RuleError> {
    let ([a, b], [out]) = (ins, outs) else { return refuse_type("matmul takes two operands and gives one result") };
    // Two matrices give a matrix, and a matrix comes of nothing else unless an operand is a stack.
    if let (Some(2), None, Some(2)) = (out.rank(), a.rank(), b.rank()) {
        *a = Shape::of_rank(2);
    }
    if let (Some(2), Some(2), None) = (out.rank(), a.rank(), b.rank()) {
        *b = Shape::of_rank(2);
    }
    let (Some(left), Some(right)) = (a.lengths().map(<[_]>::to_vec), b.lengths().map(<[_]>::to_vec)) else {
        return Ok(());
    };
    if left.is_empty() || right.is_empty() {
        return refuse(format!("matmul needs arrays with axes, got shapes {a} and {b}: multiply by scalars with *"));
    }
    let rows = if right.len() > 1 { right.len() - 2 } else { 0 };
    let (mut left, mut right) = (left, right);
    let summed = left.len() - 1;
    match (left[summed], right[rows]) {
        (UNKNOWN, known) => left[summed] = known,
        (known, UNKNOWN) => right[rows] = known,
        (x, y) if x == y => {}
        _ => {
            return refuse(format!(
                "matmul of shapes {a} and {b}: the last axis of one and the rows of the other differ"
            ));
        }
    }
    let mut stacks = [
        Shape::new(left[..left.len().saturating_sub(2)].to_vec()),
        Shape::new(right[..right.len().saturating_sub(2)].to_vec()),
    ];
    let mut stack = [Shape::unknown()];
    let matrix = usize::from(left.len() > 1) + usize::from(right.len() > 1);
    if let Some(result) = out.lengths() {
        let Some(stacked) = result.len().checked_sub(matrix) else {
            return refuse(format!("matmul of shapes {a} and {b} gives no array of shape {out}"));
        };
        stack[0] = Shape::new(result[..stacked].to_vec());
        let mut last = result[stacked..].iter();
        if left.len() > 1 {
            let at = left.len() - 2;
            known(&mut left[at], last.next());
        }
        if right.len() > 1 {
            let at = right.len() - 1;
            known(&mut right[at], last.next());
        }
    }
    broadcast::broadcast(attributes, &mut stacks, &mut stack)?;
    let of = |stack: &Shape, own: &[i64]| {
        let own = own[own.len().saturating_sub(2)..].iter().copied();
        Shape::new(stack.lengths().unwrap_or_default().iter().copied().chain(own))
    };
    let (new_a, new_b) = (of(&stacks[0], &left), of(&stacks[1], &right));
    learn(a, &new_a)?;
    learn(b, &new_b)?;
    if let Some(stack) = stack[0].lengths() {
        let mut result = stack.to_vec();
        if left.len() > 1 {
            result.push(left[left.len() - 2]);
        }
        if right.len() > 1 {
            result.push(right[right.len() - 1]);
        }
        learn(out, &Shape::new(result))?;
    }
    Ok(())
}

fn known(slot: &mut i64, value: Option<&i64>) {
    if let (UNKNOWN, Some(&value)) = (*slot, value) {
        *slot = value;
    }
}
