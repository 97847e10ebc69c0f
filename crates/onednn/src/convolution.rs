//! Convolutions of plain arrays of float32: primitives for their fast layouts, and the reorders between these and plain ones.
//!
//! The library is asked for the layout that it likes: blocks of as many channels as a vector has. Where it would fill these up, and
//! compute needless values, results have their channels last, if it has code for that, and it chooses the layout of the data.

use crate::library::Library;
use crate::memory::{Description, dims, with_own};
use crate::operand::{Operand, is_data};
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

/// Of a convolution's first, second and last operand: whether it is given as the primitive wants it, rather than plain.
pub type AsWanted = [bool; 3];

/// A convolution as the library describes it: lengths of its operands; steps, spreads and paddings along spatial axes.
struct Geometry {
    data: Vec<usize>,
    weights: Vec<usize>,
    results: Vec<usize>,
    stride: Dims,
    dilation: Dims,
    before: Dims,
    after: Dims,
    bias: bool,
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
        Self { data, weights, results, stride, dilation, before, after, bias: shape.bias }
    }

    /// The primitive of a product of results that lie like this; data and weights lie as the library likes.
    fn plan(&self, library: &'static Library, product: Product, results: &Description) -> Result<Planned, i32> {
        let functions = &library.functions;
        let data = Description::any(library, &self.data)?;
        let weights = Description::any(library, &self.weights)?;
        let bias = self.bias(library)?;
        let none: Handle = ptr::null_mut();
        let bias = bias.as_ref().map_or(none, |bias| bias.handle);
        let forward = Planned::make(library, |handle, attributes| {
            // SAFETY: descriptions and arrays live; the handle is written to.
            unsafe {
                (functions.forward)(
                    handle,
                    library.engine,
                    FORWARD_TRAINING,
                    DIRECT,
                    data.handle,
                    weights.handle,
                    bias,
                    results.handle,
                    self.stride.as_ptr(),
                    self.dilation.as_ptr(),
                    self.before.as_ptr(),
                    self.after.as_ptr(),
                    attributes,
                )
            }
        })?;
        match product {
            Product::Results => Ok(forward),
            Product::Data => Planned::make(library, |handle, attributes| {
                // SAFETY: as above.
                unsafe {
                    (functions.backward_data)(
                        handle,
                        library.engine,
                        DIRECT,
                        data.handle,
                        weights.handle,
                        results.handle,
                        self.stride.as_ptr(),
                        self.dilation.as_ptr(),
                        self.before.as_ptr(),
                        self.after.as_ptr(),
                        forward.handle,
                        attributes,
                    )
                }
            }),
            Product::Weights => Planned::make(library, |handle, attributes| {
                // SAFETY: as above.
                unsafe {
                    (functions.backward_weights)(
                        handle,
                        library.engine,
                        DIRECT,
                        data.handle,
                        weights.handle,
                        none,
                        results.handle,
                        self.stride.as_ptr(),
                        self.dilation.as_ptr(),
                        self.before.as_ptr(),
                        self.after.as_ptr(),
                        forward.handle,
                        attributes,
                    )
                }
            }),
        }
    }

    /// The description of the bias, if there is one.
    fn bias(&self, library: &'static Library) -> Result<Option<Description>, i32> {
        self.bias.then(|| Description::plain(library, &[self.results[1]])).transpose()
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
        let _alone = library.alone();
        let own = Geometry::of(shape);
        // The kinds of the first, the second and the last operand, the requests for them, and their lengths.
        let (data, weights, results) = (&own.data, &own.weights, &own.results);
        let operands = match product {
            Product::Results => {
                [(arg::SRC, query::SRC, data), (arg::WEIGHTS, query::WEIGHTS, weights), (arg::DST, query::DST, results)]
            }
            Product::Data => [
                (arg::DIFF_DST, query::DIFF_DST, results),
                (arg::WEIGHTS, query::WEIGHTS, weights),
                (arg::DIFF_SRC, query::DIFF_SRC, data),
            ],
            Product::Weights => [
                (arg::SRC, query::SRC, data),
                (arg::DIFF_DST, query::DIFF_DST, results),
                (arg::DIFF_WEIGHTS, query::DIFF_WEIGHTS, weights),
            ],
        };
        let liked = own.plan(library, product, &Description::any(library, results)?)?;
        let fills_up = |&(which, what, lengths): &(c_int, c_int, &Vec<usize>)| {
            is_data(which) && liked.wants(what).is_ok_and(|wanted| wanted.is_filled_up(lengths))
        };
        let last = if shape.groups == 1 && operands.iter().any(fills_up) {
            own.plan(library, product, &Description::channels_last(library, results)?).ok()
        } else {
            None
        };
        let planned = last.filter(Planned::is_made_for_it).unwrap_or(liked);
        let [first, second, out] = operands;
        let operand = |(which, what, lengths): (c_int, c_int, &Vec<usize>), is_output| {
            Operand::new(library, which, lengths, planned.wants(what)?, is_output)
        };
        Ok(Self {
            primitive: planned.compile()?,
            first: operand(first, false)?,
            second: operand(second, false)?,
            bias: own.bias(library)?,
            out: operand(out, true)?,
        })
    }

    /// How many bytes its second operand takes in the layout that it likes; 0 if that is the plain one.
    #[must_use]
    pub fn prepared(&self) -> usize {
        self.second.between(false)
    }

    /// Of its first, second and last operand how many channels lie side by side where it is as wanted: none for an
    /// operand that is no data, and for layouts that are not just that.
    #[must_use]
    pub fn lanes(&self) -> [Option<usize>; 3] {
        [&self.first, &self.second, &self.out].map(Operand::lanes)
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
        with_own([self.second.scratch()], |[scratch]| {
            // SAFETY: the caller's promise.
            unsafe { self.second.lay_out(second, to, scratch) }
        })
    }

    /// Runs on this thread: inputs, then the bias if there is one, then the output, all plain but for those that are as
    /// wanted; and the second one where there is a prepared one.
    ///
    /// # Safety
    ///
    /// The pointers are to arrays of the convolution's shapes; the output is not shared.
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
        let of_second = of_second || prepared.is_some();
        let scratch = [self.primitive.scratch(), self.first.scratch(), self.second.scratch(), self.out.scratch()];
        let scratch = scratch.into_iter().max().unwrap_or(0);
        let between = [self.first.between(of_first), self.second.between(of_second), self.out.between(of_out), scratch];
        with_own(between, |[first_between, second_between, out_between, scratch]| {
            let take = |operand: &Operand, as_wanted, given: *mut u8, between: *mut u8| -> Result<*mut u8, i32> {
                if !operand.is_between(as_wanted) {
                    return Ok(given);
                }
                // SAFETY: the caller's promise; the memory between is this thread's.
                unsafe { operand.lay_out(given, between, scratch) }.map(|()| between)
            };
            let first = take(&self.first, of_first, first, first_between)?;
            let second = take(&self.second, of_second, prepared.unwrap_or(second), second_between)?;
            let goes_back = self.out.is_between(of_out);
            let written = if goes_back { out_between } else { out };
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
            if goes_back {
                // SAFETY: as above.
                unsafe { self.out.give_back(written, out, scratch) }?;
            }
            Ok(())
        })
    }
}
