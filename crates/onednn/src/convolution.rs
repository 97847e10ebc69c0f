//! Convolutions of plain arrays of float32: primitives for the layouts that the library likes, and reorders between these
//! and plain ones.

use crate::library::Library;
use crate::memory::{Description, dims, with_own};
use crate::primitive::{Planned, Primitive};
use crate::sys::{DIRECT, Dims, FORWARD_TRAINING, Handle, arg, query};
use std::ffi::c_int;
use std::ptr;

/// Which of a convolution's three operands is computed from the other two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Product {
    /// Results, of data and weights.
    Results,
    /// Data, of results and weights.
    Data,
    /// Weights, of data and results.
    Weights,
}

/// A convolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Images.
    pub batch: usize,
    /// Channels of the data.
    pub channels: usize,
    /// Channels of the results.
    pub filters: usize,
    /// In how many groups both fall.
    pub groups: usize,
    /// Lengths of the data.
    pub lengths: [usize; 3],
    /// Lengths of the kernel.
    pub kernel: [usize; 3],
    /// Steps.
    pub stride: [usize; 3],
    /// Padding before the data.
    pub before: [usize; 3],
    /// How far elements of a window are apart.
    pub dilation: [usize; 3],
    /// Lengths of the results.
    pub counts: [usize; 3],
    /// Whether a number for each filter is added to the results.
    pub bias: bool,
}

/// One operand: as it is given, as the primitive wants it, and what is between.
struct Operand {
    which: c_int,
    plain: Description,
    wanted: Description,
    reorder: Option<Primitive>,
    /// How many channels lie side by side where it is as wanted, if that is all there is to it.
    lanes: Option<usize>,
}

/// Of a convolution's first, second and last operand: whether it is given as the primitive wants it, rather than plain.
pub type AsWanted = [bool; 3];

impl Operand {
    fn input(library: &'static Library, which: c_int, lengths: &[usize], wanted: Description) -> Result<Self, i32> {
        let plain = Description::plain(library, lengths)?;
        let reorder = if plain.is_same(&wanted) { None } else { Some(Primitive::reorder(library, &plain, &wanted)?) };
        let lanes = wanted.lanes(lengths);
        Ok(Self { which, plain, wanted, reorder, lanes })
    }

    fn output(library: &'static Library, which: c_int, lengths: &[usize], wanted: Description) -> Result<Self, i32> {
        let plain = Description::plain(library, lengths)?;
        let reorder = if plain.is_same(&wanted) { None } else { Some(Primitive::reorder(library, &wanted, &plain)?) };
        let lanes = wanted.lanes(lengths);
        Ok(Self { which, plain, wanted, reorder, lanes })
    }

    /// What is between, if it is given like this.
    fn reorder(&self, as_wanted: bool) -> Option<&Primitive> {
        if as_wanted { None } else { self.reorder.as_ref() }
    }

    /// How many bytes of memory between it takes.
    fn between(&self, as_wanted: bool) -> usize {
        if self.reorder(as_wanted).is_some() { self.wanted.bytes() } else { 0 }
    }

    fn scratch(&self) -> usize {
        self.reorder.as_ref().map_or(0, Primitive::scratch)
    }
}

/// A convolution as the library describes it: lengths of its operands; steps, spreads and paddings along spatial axes.
struct Geometry {
    data: Vec<usize>,
    weights: Vec<usize>,
    results: Vec<usize>,
    stride: Dims,
    dilation: Dims,
    before: Dims,
    after: Dims,
}

impl Geometry {
    fn of(shape: &Shape) -> Self {
        let skip = usize::from(shape.lengths[0] == 1 && shape.kernel[0] == 1 && shape.counts[0] == 1);
        let with = |ahead: &[usize], spatial: &[usize; 3]| -> Vec<usize> {
            ahead.iter().chain(&spatial[skip..]).copied().collect()
        };
        let (each, filters) = (shape.channels / shape.groups, shape.filters / shape.groups);
        let data = with(&[shape.batch, shape.channels], &shape.lengths);
        let weights = if shape.groups == 1 {
            with(&[filters, each], &shape.kernel)
        } else {
            with(&[shape.groups, filters, each], &shape.kernel)
        };
        let results = with(&[shape.batch, shape.filters], &shape.counts);
        let stride = dims(&shape.stride[skip..]).0;
        let dilation = dims(&shape.dilation.map(|apart| apart - 1)[skip..]).0;
        let before = dims(&shape.before[skip..]).0;
        let after = dims(
            &std::array::from_fn::<usize, 3, _>(|at| {
                let reach = (shape.counts[at] - 1) * shape.stride[at] + (shape.kernel[at] - 1) * shape.dilation[at] + 1;
                reach.saturating_sub(shape.lengths[at] + shape.before[at])
            })[skip..],
        )
        .0;
        Self { data, weights, results, stride, dilation, before, after }
    }
}

/// A convolution that was compiled.
pub struct Compiled {
    primitive: Primitive,
    first: Operand,
    second: Operand,
    bias: Option<Description>,
    out: Operand,
}

impl Compiled {
    /// Compiles one; the library's answer, if it refuses.
    pub fn new(library: &'static Library, product: Product, shape: &Shape) -> Result<Self, i32> {
        library.alone();
        let Geometry { data, weights, results, stride, dilation, before, after } = Geometry::of(shape);
        let any = |lengths: &[usize]| Description::any(library, lengths);
        let plain = |lengths: &[usize]| Description::plain(library, lengths);
        let (any_data, any_weights, any_results) = (any(&data)?, any(&weights)?, any(&results)?);
        let bias = if shape.bias { Some(plain(&[shape.filters])?) } else { None };
        let functions = &library.functions;
        let forward = Planned::make(library, |handle, attributes| {
            let bias = bias.as_ref().map_or(ptr::null_mut(), |bias| bias.handle);
            // SAFETY: descriptions and arrays live; the handle is written to.
            unsafe {
                (functions.forward)(
                    handle,
                    library.engine,
                    FORWARD_TRAINING,
                    DIRECT,
                    any_data.handle,
                    any_weights.handle,
                    bias,
                    any_results.handle,
                    stride.as_ptr(),
                    dilation.as_ptr(),
                    before.as_ptr(),
                    after.as_ptr(),
                    attributes,
                )
            }
        })?;
        let none: Handle = ptr::null_mut();
        let planned = match product {
            Product::Results => forward,
            Product::Data => Planned::make(library, |handle, attributes| {
                // SAFETY: as above.
                unsafe {
                    (functions.backward_data)(
                        handle,
                        library.engine,
                        DIRECT,
                        any_data.handle,
                        any_weights.handle,
                        any_results.handle,
                        stride.as_ptr(),
                        dilation.as_ptr(),
                        before.as_ptr(),
                        after.as_ptr(),
                        forward.handle,
                        attributes,
                    )
                }
            })?,
            Product::Weights => Planned::make(library, |handle, attributes| {
                // SAFETY: as above.
                unsafe {
                    (functions.backward_weights)(
                        handle,
                        library.engine,
                        DIRECT,
                        any_data.handle,
                        any_weights.handle,
                        none,
                        any_results.handle,
                        stride.as_ptr(),
                        dilation.as_ptr(),
                        before.as_ptr(),
                        after.as_ptr(),
                        forward.handle,
                        attributes,
                    )
                }
            })?,
        };
        let wants = |what| planned.wants(what);
        let (first, second, out) = match product {
            Product::Results => (
                Operand::input(library, arg::SRC, &data, wants(query::SRC)?)?,
                Operand::input(library, arg::WEIGHTS, &weights, wants(query::WEIGHTS)?)?,
                Operand::output(library, arg::DST, &results, wants(query::DST)?)?,
            ),
            Product::Data => (
                Operand::input(library, arg::DIFF_DST, &results, wants(query::DIFF_DST)?)?,
                Operand::input(library, arg::WEIGHTS, &weights, wants(query::WEIGHTS)?)?,
                Operand::output(library, arg::DIFF_SRC, &data, wants(query::DIFF_SRC)?)?,
            ),
            Product::Weights => (
                Operand::input(library, arg::SRC, &data, wants(query::SRC)?)?,
                Operand::input(library, arg::DIFF_DST, &results, wants(query::DIFF_DST)?)?,
                Operand::output(library, arg::DIFF_WEIGHTS, &weights, wants(query::DIFF_WEIGHTS)?)?,
            ),
        };
        Ok(Self { primitive: planned.compile()?, first, second, bias, out })
    }

    /// How many bytes its second operand takes in the layout that it likes; 0 if that is the plain one.
    #[must_use]
    pub fn prepared(&self) -> usize {
        self.second.between(false)
    }

    /// Of its first, second and last operand how many channels lie side by side where it is as wanted: none for what is not
    /// data, and for layouts that are not just that.
    #[must_use]
    pub fn lanes(&self) -> [Option<usize>; 3] {
        [&self.first, &self.second, &self.out].map(|operand| {
            let is_data = !matches!(operand.which, arg::WEIGHTS | arg::DIFF_WEIGHTS);
            operand.lanes.filter(|_| is_data)
        })
    }

    /// Whether its second operand has the layout of another's.
    #[must_use]
    pub fn agrees(&self, other: &Self) -> bool {
        self.second.wanted.is_same(&other.second.wanted)
    }

    /// Lays its second operand out as it likes it, for executions to come.
    ///
    /// # Safety
    ///
    /// The pointers are to an array of its shape, and to as many bytes as it takes, aligned to 64.
    pub unsafe fn prepare(&self, second: *mut u8, to: *mut u8) -> Result<(), i32> {
        let Some(reorder) = &self.second.reorder else { return Ok(()) };
        with_own([reorder.scratch()], |[scratch]| {
            let operands = [(arg::SRC, &self.second.plain, second), (arg::DST, &self.second.wanted, to)];
            // SAFETY: the caller's promise.
            unsafe { reorder.run(&operands, scratch) }
        })
    }

    /// Runs on this thread: inputs, then the bias if there is one, then the output, all plain but for those that are as
    /// wanted; and the second one where there is a prepared one.
    ///
    /// # Safety
    ///
    /// The pointers are to arrays of the convolution's shapes; the output is nobody else's.
    pub unsafe fn run(
        &self,
        first: *mut u8,
        second: *mut u8,
        prepared: Option<*mut u8>,
        bias: *mut u8,
        out: *mut u8,
        as_wanted: AsWanted,
    ) -> Result<(), i32> {
        let [of_first, of_second, of_out] = as_wanted;
        let scratch = [self.primitive.scratch(), self.first.scratch(), self.second.scratch(), self.out.scratch()];
        let scratch = scratch.into_iter().max().unwrap_or(0);
        let between = [self.first.between(of_first), self.second.between(of_second), self.out.between(of_out), scratch];
        with_own(between, |[first_between, second_between, out_between, scratch]| {
            let take = |operand: &Operand, as_wanted, given: *mut u8, between: *mut u8| -> Result<*mut u8, i32> {
                let Some(reorder) = operand.reorder(as_wanted) else { return Ok(given) };
                let operands = [(arg::SRC, &operand.plain, given), (arg::DST, &operand.wanted, between)];
                // SAFETY: the caller's promise; the memory between is this thread's.
                unsafe { reorder.run(&operands, scratch) }.map(|()| between)
            };
            let first = take(&self.first, of_first, first, first_between)?;
            let second = prepared.map_or_else(|| take(&self.second, of_second, second, second_between), Ok)?;
            let back = self.out.reorder(of_out);
            let written = if back.is_some() { out_between } else { out };
            let bias = self.bias.as_ref().map(|description| (arg::BIAS, description, bias));
            let operands: Vec<_> = [
                (self.first.which, &self.first.wanted, first),
                (self.second.which, &self.second.wanted, second),
                (self.out.which, &self.out.wanted, written),
            ]
            .into_iter()
            .chain(bias)
            .collect();
            // SAFETY: as above.
            unsafe { self.primitive.run(&operands, scratch) }?;
            if let Some(reorder) = back {
                let operands = [(arg::SRC, &self.out.wanted, written), (arg::DST, &self.out.plain, out)];
                // SAFETY: as above.
                unsafe { reorder.run(&operands, scratch) }?;
            }
            Ok(())
        })
    }
}
