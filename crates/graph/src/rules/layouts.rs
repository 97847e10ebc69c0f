//! Layouts that ops take and make where no rule of their own says so. The numbers of axes among an op's attributes mean
//! places in the layout that the graph was written for: where such an op gets another one, it asks for that one back.

#![allow(clippy::unnecessary_wraps)] // rules may refuse

use crate::error::RuleError;
use crate::registry::{Call, Layouts};
use crate::value::{Attributes, LayoutAxis, Shape, Value, layout_axes};
use std::sync::Arc;

type Answer = Result<(Layouts, Layouts), RuleError>;
type Layout = Option<Arc<str>>;

/// One element of each input for each of the result. Where all have layouts and the axes of one are those of each other
/// or more, that one decides: the others get theirs in its order, if they spread over it so.
pub(super) fn elementwise(call: &Call<'_>, ins: &Layouts, last: &Layouts, outs: &Layouts) -> Answer {
    let made = |layout: Layout| vec![layout; outs.len()];
    if let Some((widest, wanted)) = spread(ins) {
        return Ok((wanted, made(Some(widest))));
    }
    let found = widest(call, last).or_else(|| spread(last).filter(|(_, wanted)| wanted == last).map(|found| found.0));
    Ok((last.clone(), made(found)))
}

/// The layout with the most axes, and those of all inputs in its order. None where an input has none, or has axes of its
/// own, or where its axes in that order are not the last ones, along which arrays spread.
fn spread(ins: &Layouts) -> Option<(Arc<str>, Layouts)> {
    let all = ins.iter().map(|each| layout_axes(each.as_deref()?).ok()).collect::<Option<Vec<_>>>()?;
    let count = |axes: &Vec<LayoutAxis>| axes.iter().filter(|axis| axis.block.is_none()).count();
    let most = all.iter().map(count).max()?;
    let at = all.iter().position(|axes| count(axes) == most)?;
    let wide = &all[at];
    let fitting = |axes: &Vec<LayoutAxis>| {
        let has = |name: char| axes.iter().any(|axis| axis.name == name);
        let first = wide.iter().position(|axis| has(axis.name))?;
        let is_last = wide[first..].iter().all(|axis| has(axis.name));
        let is_part = axes.iter().all(|axis| wide.iter().any(|each| each.name == axis.name));
        (is_last && is_part).then(|| layout_text(&wide[first..]))
    };
    let wanted = all.iter().map(fitting).collect::<Option<Vec<_>>>()?;
    Some((ins[at].clone()?, wanted.into_iter().map(Some).collect()))
}

fn layout_text(axes: &[LayoutAxis]) -> Arc<str> {
    let part = |axis: &LayoutAxis| match axis.block {
        Some(block) => format!("{block}{}", axis.name.to_ascii_lowercase()),
        None => axis.name.to_string(),
    };
    axes.iter().map(part).collect::<String>().into()
}

/// The layout of the input that decides the result's axes, as far as shapes are known.
fn widest(call: &Call<'_>, last: &Layouts) -> Layout {
    let most = call.shapes.iter().map(Shape::rank).collect::<Option<Vec<_>>>()?.into_iter().max()?;
    let of_most = || last.iter().zip(call.shapes).filter(|(_, shape)| shape.rank() == Some(most));
    let found = of_most().find_map(|(layout, _)| layout.clone())?;
    let agree = of_most().all(|(layout, _)| layout.as_ref().is_none_or(|each| *each == found));
    (agree && layout_axes(&found).is_ok_and(|axes| axes.len() == most)).then_some(found)
}

/// A product of matrices: the rows of the first operand, the columns of the second.
pub(super) fn matmul(_call: &Call<'_>, _ins: &Layouts, last: &Layouts, outs: &Layouts) -> Answer {
    let plain = |at: usize| {
        let axes = layout_axes(last.get(at)?.as_deref()?).ok()?;
        axes.iter().all(|axis| axis.block.is_none()).then(|| axes.iter().map(|axis| axis.name).collect::<String>())
    };
    let made = || {
        let (rows, columns) = (plain(0)?, plain(1)?);
        let (own, theirs) = (rows.len().checked_sub(2)?, columns.len().checked_sub(2)?);
        let stacked = if theirs > own { &columns[..theirs] } else { &rows[..own] };
        let text = format!("{stacked}{}{}", &rows[own..=own], &columns[theirs + 1..]);
        layout_axes(&text).is_ok().then(|| Arc::from(text))
    };
    Ok((last.clone(), vec![made(); outs.len()]))
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
