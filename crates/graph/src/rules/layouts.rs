//! Layouts that ops take and make where no rule of their own says so. The numbers of axes among an op's attributes mean
//! places in the layout that the graph was written for: where such an op gets another one, it asks for that one back.

#![allow(clippy::unnecessary_wraps)] // rules may refuse

use crate::error::RuleError;
use crate::registry::{Call, Layouts};
use crate::value::{Attributes, Shape, Value, layout_axes};
use std::sync::Arc;

type Answer = Result<(Layouts, Layouts), RuleError>;
type Layout = Option<Arc<str>>;

/// One element of each input for each of the result: all in the layout of the first, where all have one of the same axes.
pub(super) fn elementwise(call: &Call<'_>, ins: &Layouts, last: &Layouts, outs: &Layouts) -> Answer {
    let made = |layout: Layout| vec![layout; outs.len()];
    if let Some(first) = ins.first().cloned().flatten()
        && ins.iter().all(|each| each.as_deref().is_some_and(|each| has_axes_of(each, &first)))
    {
        return Ok((vec![Some(first.clone()); ins.len()], made(Some(first))));
    }
    Ok((last.clone(), made(widest(call, last))))
}

/// The layout of the input that decides the result's axes, as far as shapes are known.
fn widest(call: &Call<'_>, last: &Layouts) -> Layout {
    let most = call.shapes.iter().map(Shape::rank).collect::<Option<Vec<_>>>()?.into_iter().max()?;
    let of_most = || last.iter().zip(call.shapes).filter(|(_, shape)| shape.rank() == Some(most));
    let found = of_most().find_map(|(layout, _)| layout.clone())?;
    let agree = of_most().all(|(layout, _)| layout.as_ref().is_none_or(|each| *each == found));
    (agree && layout_axes(&found).is_ok_and(|axes| axes.len() == most)).then_some(found)
}

fn has_axes_of(one: &str, other: &str) -> bool {
    let names = |text: &str| {
        layout_axes(text).map(|axes| {
            let mut names: Vec<_> = axes.iter().filter(|axis| axis.block.is_none()).map(|axis| axis.name).collect();
            names.sort_unstable();
            names
        })
    };
    names(one).is_ok_and(|own| names(other).is_ok_and(|theirs| own == theirs))
}

/// A reduction: the axes that are left.
pub(super) fn reduce(call: &Call<'_>, _ins: &Layouts, last: &Layouts, outs: &Layouts) -> Answer {
    let left = last.first().cloned().flatten().and_then(|layout| reduced(call.attributes, &layout));
    Ok((last.clone(), vec![left; outs.len()]))
}

fn reduced(attributes: &Attributes, layout: &Arc<str>) -> Layout {
    if attributes.flag("keepdims") {
        return Some(layout.clone());
    }
    let axes = layout_axes(layout).ok()?;
    if axes.iter().any(|axis| axis.block.is_some()) {
        return None;
    }
    let rank = i64::try_from(axes.len()).ok()?;
    let given = match attributes.get("axis") {
        None | Some(Value::None) => return None,
        Some(value) => value.as_integers()?,
    };
    let gone: Vec<i64> = given.into_iter().map(|at| if at < 0 { at + rank } else { at }).collect();
    let stays = |at: i64| gone.contains(&at) == attributes.flag("exclude");
    let left: String = axes.iter().zip(0..).filter(|&(_, at)| stays(at)).map(|(axis, _)| axis.name).collect();
    (!left.is_empty()).then(|| left.into())
}

/// A join along an axis that the inputs have: theirs, if all have the same.
pub(super) fn concat(call: &Call<'_>, _ins: &Layouts, last: &Layouts, outs: &Layouts) -> Answer {
    let is_flat = matches!(call.attributes.get("axis"), Some(Value::None));
    let first = last.first().cloned().flatten();
    let found = first.filter(|first| !is_flat && last.iter().all(|each| each.as_ref() == Some(first)));
    Ok((last.clone(), vec![found; outs.len()]))
}

/// A permutation of axes.
pub(super) fn permute(call: &Call<'_>, _ins: &Layouts, last: &Layouts, outs: &Layouts) -> Answer {
    let found = last.first().cloned().flatten().and_then(|layout| permuted(call.attributes, &layout));
    Ok((last.clone(), vec![found; outs.len()]))
}

fn permuted(attributes: &Attributes, layout: &str) -> Layout {
    let axes = layout_axes(layout).ok()?;
    if axes.iter().any(|axis| axis.block.is_some()) {
        return None;
    }
    let rank = i64::try_from(axes.len()).ok()?;
    let order = match attributes.get("axes") {
        None | Some(Value::None) => (0..rank).rev().collect(),
        Some(value) => {
            value.as_integers().map(|order| if order.is_empty() { (0..rank).rev().collect() } else { order })?
        }
    };
    let place = |at: i64| usize::try_from(if at < 0 { at + rank } else { at }).ok();
    let names = order.into_iter().map(|at| Some(axes.get(place(at)?)?.name)).collect::<Option<String>>()?;
    layout_axes(&names).is_ok_and(|found| found.len() == axes.len()).then(|| names.into())
}
