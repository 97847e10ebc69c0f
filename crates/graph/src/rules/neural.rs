//! Layers of networks: the shapes of parameters from data and attributes.

use super::{learn, refuse};
use crate::registry::RuleError;
use crate::value::{Attributes, Shape, UNKNOWN};

fn number(attributes: &Attributes, names: &[&str]) -> Option<i64> {
    names.iter().find_map(|name| attributes.int(name))
}

fn numbers(attributes: &Attributes, names: &[&str], count: usize, default: i64) -> Result<Vec<i64>, RuleError> {
    let found = names.iter().find_map(|name| attributes.integers(name)).unwrap_or_default();
    match found.len() {
        0 => Ok(vec![default; count]),
        1 => Ok(vec![found[0]; count]),
        given if given == count => Ok(found),
        given => refuse(format!("attribute '{}' has {given} numbers for {count} axes", names[0])),
    }
}

fn length(shape: &Shape, at: usize) -> i64 {
    shape.lengths().and_then(|own| own.get(at).copied()).unwrap_or(UNKNOWN)
}

fn product(lengths: &[i64]) -> i64 {
    lengths.iter().try_fold(1_i64, |all, &each| if each < 0 { None } else { all.checked_mul(each) }).unwrap_or(UNKNOWN)
}

/// `x @ weight.T + bias`: attributes `units` (or `num_hidden`) and `flatten`, by default true.
pub(super) fn dense(attributes: &Attributes, ins: &mut [Shape], outs: &mut [Shape]) -> Result<(), RuleError> {
    let [x, weight, rest @ ..] = ins else { return refuse("a dense layer takes data and a weight") };
    let [out] = outs else { return refuse("a dense layer gives one result") };
    let flatten = attributes.get("flatten").is_none_or(|_| attributes.flag("flatten"));
    let mut units = number(attributes, &["units", "num_hidden"]).unwrap_or(UNKNOWN);
    for shape in [&*weight].into_iter().chain(rest.first()) {
        if units == UNKNOWN {
            units = length(shape, 0);
        }
    }
    let mut wide = UNKNOWN;
    if flatten {
        learn(out, &Shape::new([UNKNOWN, units]))?;
    }
    if let Some(own) = x.lengths() {
        let Some((&first, others)) = own.split_first() else { return refuse("a scalar is no batch of data") };
        wide = if flatten { product(others) } else { own[own.len() - 1] };
        let mut result = if flatten { vec![first] } else { own[..own.len() - 1].to_vec() };
        result.push(units);
        learn(out, &Shape::new(result))?;
    }
    learn(weight, &Shape::new([units, wide]))?;
    if let Some(bias) = rest.first_mut() {
        learn(bias, &Shape::new([units]))?;
    }
    // The batch, and the width of data that is a matrix, follow from the others.
    if let (Some(own), Some(result)) = (x.lengths(), out.lengths())
        && (!flatten || result.len() == 2)
    {
        let mut own = own.to_vec();
        let kept = if flatten { 1 } else { own.len() - 1 };
        for (slot, &known) in own.iter_mut().zip(result).take(kept) {
            if *slot == UNKNOWN {
                *slot = known;
            }
        }
        let last = own.len() - 1;
        if (own.len() == 2 || !flatten) && own[last] == UNKNOWN {
            own[last] = length(weight, 1);
        }
        learn(x, &Shape::new(own))?;
    }
    Ok(())
}

/// The length after a window has gone over `length` elements.
fn window(length: i64, kernel: i64, stride: i64, padding: i64, dilation: i64, up: bool) -> Result<i64, RuleError> {
    if length == UNKNOWN || kernel == UNKNOWN {
        return Ok(UNKNOWN);
    }
    if stride < 1 || kernel < 1 || dilation < 1 {
        return refuse("kernels, strides and dilations are at least 1");
    }
    let room = length.saturating_add(padding.saturating_mul(2)) - dilation.saturating_mul(kernel - 1) - 1;
    if room < 0 {
        return refuse(format!("a kernel of {kernel} does not fit into {length} elements with padding {padding}"));
    }
    Ok((if up { (room + stride - 1) / stride } else { room / stride }) + 1)
}

/// The attributes of a convolution.
pub(super) const OF_CONVOLUTION: &[&str] = &[
    "kernel",
    "kernel_size",
    "stride",
    "pad",
    "padding",
    "dilate",
    "dilation",
    "num_filter",
    "channels",
    "out_channels",
    "num_group",
    "groups",
    "group",
];

/// The attributes of a pooling.
pub(super) const OF_POOLING: &[&str] =
    &["kernel", "kernel_size", "stride", "pad", "padding", "global_pool", "pooling_convention"];

/// Data `(n, c, ...)`, weight `(num_filter, c / groups, ...)`: attributes `kernel`, `stride`, `pad`, `dilate`, `num_filter`,
/// `num_group`.
pub(super) fn convolution(attributes: &Attributes, ins: &mut [Shape], outs: &mut [Shape]) -> Result<(), RuleError> {
    let [x, weight, rest @ ..] = ins else { return refuse("a convolution takes data and a weight") };
    let [out] = outs else { return refuse("a convolution gives one result") };
    let kernel = ["kernel", "kernel_size"].iter().find_map(|name| attributes.integers(name));
    let Some(rank) =
        kernel.as_ref().map(|kernel| kernel.len() + 2).filter(|&rank| rank > 3).or(x.rank()).or(weight.rank())
    else {
        return Ok(());
    };
    if rank < 3 {
        return refuse(format!("a convolution wants data (n, c, ...), got shape {x}"));
    }
    let spatial = rank - 2;
    learn(x, &Shape::of_rank(rank))?;
    let filters = number(attributes, &["num_filter", "channels", "out_channels"]).unwrap_or_else(|| length(weight, 0));
    let groups = number(attributes, &["num_group", "groups", "group"]).unwrap_or(1).max(1);
    let channels = length(x, 1);
    if channels != UNKNOWN && channels % groups != 0 {
        return refuse(format!("{channels} channels cannot be split into {groups} groups"));
    }
    let each = if channels == UNKNOWN { UNKNOWN } else { channels / groups };
    let kernel = match kernel {
        Some(_) => numbers(attributes, &["kernel", "kernel_size"], spatial, 1)?,
        None => (0..spatial).map(|at| length(weight, at + 2)).collect(),
    };
    learn(weight, &Shape::new([filters, each].into_iter().chain(kernel.iter().copied())))?;
    if let Some(bias) = rest.first_mut() {
        learn(bias, &Shape::new([filters]))?;
    }
    if each == UNKNOWN && length(weight, 1) != UNKNOWN {
        let mut own = x.lengths().unwrap_or_default().to_vec();
        own[1] = length(weight, 1).saturating_mul(groups);
        *x = Shape::new(own);
    }
    let stride = numbers(attributes, &["stride"], spatial, 1)?;
    let padding = numbers(attributes, &["pad", "padding"], spatial, 0)?;
    let dilation = numbers(attributes, &["dilate", "dilation"], spatial, 1)?;
    let mut result = vec![length(x, 0), filters];
    for at in 0..spatial {
        result.push(window(length(x, at + 2), kernel[at], stride[at], padding[at], dilation[at], false)?);
    }
    learn(out, &Shape::new(result))?;
    batch(x, out)
}

/// The first axis of data follows from that of the result.
fn batch(x: &mut Shape, out: &Shape) -> Result<(), RuleError> {
    let Some(own) = x.lengths() else { return Ok(()) };
    let mut own = own.to_vec();
    if let Some(first) = own.first_mut() {
        *first = length(out, 0);
    }
    let known = Shape::new(own.into_iter().enumerate().map(|(at, each)| if at == 0 { each } else { UNKNOWN }));
    learn(x, &known)
}

/// Data `(n, c, ...)`: attributes `kernel`, `stride`, `pad`, `global_pool`, `pooling_convention`.
pub(super) fn pooling(attributes: &Attributes, ins: &mut [Shape], outs: &mut [Shape]) -> Result<(), RuleError> {
    let ([x], [out, ..]) = (ins, outs) else { return refuse("pooling takes data") };
    let Some(rank) = x.rank() else { return Ok(()) };
    let Some(spatial) = rank.checked_sub(2).filter(|&spatial| spatial > 0) else {
        return refuse(format!("pooling wants data (n, c, ...), got shape {x}"));
    };
    let mut result = vec![length(x, 0), length(x, 1)];
    if attributes.flag("global_pool") {
        result.extend(std::iter::repeat_n(1, spatial));
    } else {
        let kernel = numbers(attributes, &["kernel", "kernel_size"], spatial, 1)?;
        let stride = numbers(attributes, &["stride"], spatial, 1)?;
        let padding = numbers(attributes, &["pad", "padding"], spatial, 0)?;
        let up = attributes.get("pooling_convention").is_some_and(|value| value.to_string() == "full");
        for at in 0..spatial {
            result.push(window(length(x, at + 2), kernel[at], stride[at], padding[at], 1, up)?);
        }
    }
    learn(out, &Shape::new(result))?;
    batch(x, out)
}

/// Data and its normalised form have one shape; all else has a number for each channel, axis 1 or attribute `axis`.
pub(super) fn batch_norm(attributes: &Attributes, ins: &mut [Shape], outs: &mut [Shape]) -> Result<(), RuleError> {
    let ([x, rest @ ..], [out, others @ ..]) = (ins, outs) else { return refuse("batch normalisation takes data") };
    learn(out, x)?;
    learn(x, out)?;
    let at = match x.rank() {
        Some(rank) => Some(super::axis(attributes.int("axis").unwrap_or(1), rank)?),
        None => None,
    };
    let mut channels = at.map_or(UNKNOWN, |at| length(x, at));
    for shape in rest.iter().chain(others.iter()) {
        if channels == UNKNOWN {
            channels = length(shape, 0);
        }
    }
    for shape in rest.iter_mut().chain(others) {
        learn(shape, &Shape::new([channels]))?;
    }
    if let (Some(at), Some(own)) = (at, x.lengths()) {
        let mut own = own.to_vec();
        own[at] = channels;
        learn(x, &Shape::new(own))?;
        let x = x.clone();
        learn(out, &x)?;
    }
    Ok(())
}
