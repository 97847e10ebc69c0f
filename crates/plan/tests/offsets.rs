//! Offsets for random intervals: none shares a byte with another that is live at the same time.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use weft_plan::{Options, Placement, PlanError, plan_offsets};

type Columns = (Vec<i64>, Vec<i64>, Vec<u64>);

fn intervals(most: usize, time: i64, size: u64) -> impl Strategy<Value = Columns> {
    prop::collection::vec((0..time, 0..time, 0..size), 0..most).prop_map(|rows| {
        let lower = rows.iter().map(|&(one, other, _)| one.min(other)).collect();
        let upper = rows.iter().map(|&(one, other, _)| one.max(other)).collect();
        (lower, upper, rows.iter().map(|row| row.2).collect())
    })
}

/// Checks all that a placement promises.
fn check((lower, upper, size): &Columns, alignment: u64, placement: &Placement) -> Result<(), TestCaseError> {
    let ends = || placement.offsets.iter().zip(size).map(|(offset, size)| offset + size);
    prop_assert!(placement.offsets.iter().all(|offset| offset % alignment == 0));
    let naive: u64 = size.iter().map(|size| size.next_multiple_of(alignment)).sum();
    let live = |i: usize| size[i] > 0 && lower[i] < upper[i];
    let most = ends().enumerate().filter(|&(i, _)| live(i)).map(|(_, end)| end).max().unwrap_or(0);
    prop_assert_eq!(most, placement.nbytes);
    prop_assert!(placement.bound <= placement.nbytes && placement.nbytes <= naive);
    let ends: Vec<u64> = ends().collect();
    for i in (0..size.len()).filter(|&i| live(i)) {
        for j in (0..i).filter(|&j| live(j)) {
            let together = lower[i] < upper[j] && lower[j] < upper[i];
            let shared = placement.offsets[i] < ends[j] && placement.offsets[j] < ends[i];
            prop_assert!(!(together && shared), "{i} and {j}");
        }
    }
    let peak = lower
        .iter()
        .map(|time| (0..size.len()).filter(|&i| (lower[i]..upper[i]).contains(time)).map(|i| size[i]).sum());
    prop_assert!(placement.bound >= peak.max().unwrap_or(0));
    Ok(())
}

/// So many cases, from a fixed seed; `PROPTEST_CASES` of them where that is set.
fn config(cases: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { default.cases } else { cases };
    ProptestConfig { cases, failure_persistence: None, rng_seed: RngSeed::Fixed(11), ..default }
}

proptest! {
    #![proptest_config(config(256))]
    #[test]
    fn nothing_overlaps(columns in intervals(60, 40, 1000), shift in 0_u32..8) {
        let options = Options { alignment: 1 << shift, ..Options::default() };
        let placement = plan_offsets(&columns.0, &columns.1, &columns.2, &options).unwrap();
        check(&columns, 1 << shift, &placement)?;
    }
}

#[test]
fn what_has_no_size_or_no_lifetime_conflicts_with_nothing() {
    let placement = plan_offsets(&[0, 0, 5], &[9, 9, 5], &[64, 0, 64], &Options::default()).unwrap();
    assert_eq!(placement, Placement { offsets: vec![0, 0, 0], nbytes: 64, bound: 64 });
}

#[test]
fn many_intervals_that_all_conflict_are_placed_without_listing_the_conflicts() {
    let count = 30_000;
    let lower: Vec<i64> = (0..count).collect();
    let upper: Vec<i64> = (0..count).map(|begin| begin + count).collect();
    let size = vec![64; lower.len()];
    let placement = plan_offsets(&lower, &upper, &size, &Options::default()).unwrap();
    assert_eq!(placement.nbytes, placement.bound);
}

#[test]
fn where_no_placement_is_smaller_than_another_plan_any_will_do() {
    let sizes = (0..300).map(|at| 64 * (1 + at * at % 37)).collect();
    let columns: Columns = ((0..300).collect(), (0..300).map(|at| at + 7 + at % 5 * 20).collect(), sizes);
    let plan = |below| {
        let placement = plan_offsets(&columns.0, &columns.1, &columns.2, &Options { below, ..Options::default() });
        let placement = placement.unwrap();
        check(&columns, 64, &placement).unwrap();
        placement
    };
    let wanted = plan(None);
    assert_eq!(plan(Some(wanted.bound + 1)), wanted);
    assert!(plan(Some(wanted.bound)).nbytes > wanted.nbytes, "the first one was taken");
}

#[test]
fn a_capacity_below_the_peak_is_refused_with_the_bound_and_its_time() {
    let options = Options { capacity: Some(127), ..Options::default() };
    let error = plan_offsets(&[0, 3], &[5, 7], &[64, 64], &options).unwrap_err();
    assert_eq!(error, PlanError::Capacity { capacity: 127, bound: 128, time: 3 });
    let options = Options { capacity: Some(128), ..options };
    assert_eq!(plan_offsets(&[0, 3], &[5, 7], &[64, 64], &options).unwrap().nbytes, 128);
}

#[test]
fn the_last_interval_need_not_fill_its_last_unit() {
    let options = Options { capacity: Some(74), ..Options::default() };
    let placement = plan_offsets(&[0, 0], &[1, 1], &[10, 64], &options).unwrap();
    assert_eq!((placement.offsets, placement.nbytes), (vec![64, 0], 74));
}

#[test]
fn mistakes_are_told() {
    let plan = |lower: &[i64], size: &[u64], options| plan_offsets(lower, &[1], size, &options).unwrap_err();
    let options = Options::default();
    assert_eq!(plan(&[2], &[1], options), PlanError::Reversed { index: 0, lower: 2, upper: 1 });
    assert_eq!(plan(&[0, 1], &[1], options), PlanError::Lengths { lower: 2, upper: 1, size: 1 });
    for alignment in [0, 3] {
        assert_eq!(plan(&[0], &[1], Options { alignment, ..options }), PlanError::Alignment(alignment));
    }
    for size in [u64::MAX, 1 << 63, (1 << 63) - 1] {
        assert_eq!(plan(&[0], &[size], options), PlanError::TooLarge { index: 0 });
    }
    assert_eq!(plan(&[0], &[1], Options { seconds: -1.0, ..options }), PlanError::Seconds(-1.0));
}

/// The smallest memory: the best of all orders in which each interval goes to the lowest place that is free.
fn smallest((lower, upper, size): &Columns, alignment: u64) -> u64 {
    fn walk(columns: &Columns, alignment: u64, placed: &mut Vec<(usize, u64)>, best: &mut u64) {
        let (lower, upper, size) = columns;
        if placed.len() == size.len() {
            let ends = placed.iter().filter(|&&(i, _)| size[i] > 0 && lower[i] < upper[i]).map(|&(i, at)| at + size[i]);
            *best = ends.max().unwrap_or(0).min(*best);
            return;
        }
        for i in 0..size.len() {
            if placed.iter().any(|&(j, _)| i == j) {
                continue;
            }
            let shares = |at: u64| {
                placed.iter().any(|&(j, other)| {
                    lower[i].max(lower[j]) < upper[i].min(upper[j]) && at < other + size[j] && other < at + size[i]
                })
            };
            let at = (0..1000).map(|unit| unit * alignment).find(|&at| !shares(at)).unwrap();
            placed.push((i, at));
            walk(columns, alignment, placed, best);
            placed.pop();
        }
    }
    let mut best = u64::MAX;
    walk(&(lower.clone(), upper.clone(), size.clone()), alignment, &mut Vec::new(), &mut best);
    best
}

proptest! {
    #![proptest_config(config(150))]
    #[test]
    fn the_search_finds_the_smallest(columns in intervals(6, 8, 12), shift in 0_u32..4) {
        let options = Options { alignment: 1 << shift, seconds: 60.0, ..Options::default() };
        let plan = |options: Options<'_>| plan_offsets(&columns.0, &columns.1, &columns.2, &options);
        let best = smallest(&columns, 1 << shift);
        let placement = plan(options).unwrap();
        check(&columns, 1 << shift, &placement)?;
        prop_assert_eq!(placement.nbytes, best);
        for seconds in [0.0, 60.0] {
            let fits = plan(Options { capacity: Some(best), seconds, ..options }).unwrap();
            check(&columns, 1 << shift, &fits)?;
            prop_assert!(fits.nbytes <= best);
            if best > 0 {
                let error = plan(Options { capacity: Some(best - 1), seconds, ..options }).unwrap_err();
                prop_assert!(matches!(error, PlanError::Impossible { .. } | PlanError::Capacity { .. }), "{error}");
            }
        }
    }

    #[test]
    fn the_search_keeps_intervals_apart(columns in intervals(40, 30, 300)) {
        let bound = plan_offsets(&columns.0, &columns.1, &columns.2, &Options::default()).unwrap().bound;
        for capacity in [None, Some(bound + bound / 20)] {
            let options = Options { seconds: 0.02, capacity, ..Options::default() };
            match plan_offsets(&columns.0, &columns.1, &columns.2, &options) {
                Ok(placement) => {
                    check(&columns, 64, &placement)?;
                    prop_assert!(capacity.is_none_or(|capacity| placement.nbytes <= capacity));
                }
                Err(error) => prop_assert!(capacity.is_some(), "{error}"),
            }
        }
    }
}

#[test]
fn a_search_can_be_interrupted() {
    // Rectangles cut from a square: packing them again into its height is hard.
    let (lower, upper, size) = cut(400, 11);
    let options = Options { alignment: 1, interrupted: Some(&|| true), capacity: Some(1 << 20), ..Options::default() };
    assert_eq!(plan_offsets(&lower, &upper, &size, &options), Err(PlanError::Interrupted));
}

/// A square of 2**20, cut into so many rectangles: a placement without a gap exists.
fn cut(count: usize, seed: u64) -> Columns {
    let mut state = seed;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut pieces = vec![(0_i64, 1_i64 << 20, 1_u64 << 20)];
    while pieces.len() < count {
        let longest =
            (0..pieces.len()).max_by_key(|&i| (pieces[i].1 - pieces[i].0).cast_unsigned().max(pieces[i].2)).unwrap();
        let (lower, upper, size) = pieces.swap_remove(longest);
        let length = (upper - lower).cast_unsigned();
        if length >= size {
            let at = lower + (length / 5 + random(length * 3 / 5)).cast_signed();
            pieces.extend([(lower, at, size), (at, upper, size)]);
        } else {
            let at = size / 5 + random(size * 3 / 5);
            pieces.extend([(lower, upper, at), (lower, upper, size - at)]);
        }
    }
    (pieces.iter().map(|p| p.0).collect(), pieces.iter().map(|p| p.1).collect(), pieces.iter().map(|p| p.2).collect())
}

#[test]
fn a_square_cut_into_pieces_is_put_together_again() {
    for (count, seed) in [(20, 1), (24, 2), (28, 3)] {
        let columns = cut(count, seed);
        let options = Options { alignment: 1, capacity: Some(1 << 20), ..Options::default() };
        let placement = plan_offsets(&columns.0, &columns.1, &columns.2, &options).unwrap();
        check(&columns, 1, &placement).unwrap();
        assert_eq!(placement.nbytes, 1 << 20);
    }
}
