//! The graphs that replays go by, and which of their steps goes first.

use super::ready::Ready;
use super::shape::{FEW, Rows, Shape};
use std::collections::BTreeSet;

#[test]
fn a_chain_goes_on_without_being_counted() {
    let shape = Shape::new(3, 0, &[(0, 1), (1, 2)], &[], (&[0; 3], &[]), |_, _| true);
    assert_eq!([shape.next(0), shape.next(1), shape.next(2)], [Some(1), Some(2), None]);
}

#[test]
fn steps_go_by_priority_then_by_the_way_before_them_then_as_recorded() {
    // 0 -> 2 -> 3, 1 -> 3; 4 and 5 are alone, and 5 has a priority.
    let edges = [(0, 2), (2, 3), (1, 3)];
    let shape = Shape::new(6, 0, &edges, &[], (&[1; 6], &[0, 0, 0, 0, 0, 1]), |_, _| false);
    let order: Vec<u32> = (0..6).map(|rank| shape.step_of(rank)).collect();
    assert_eq!(order, [5, 0, 1, 2, 3, 4]);
    let ranks: Vec<u32> = shape.counts().take(6).map(|count| count.rank).collect();
    assert_eq!(ranks, [1, 2, 3, 4, 5, 0]);
}

#[test]
fn short_rows_are_answered_with_what_lies_behind_them() {
    let pairs: Vec<(u32, u32)> = (0..3).map(|item| (0, item)).chain((10..30).map(|item| (2, item))).collect();
    let rows = Rows::new(4, &pairs);
    assert_eq!(rows.few(0), Some((&[0, 1, 2, 10, 11, 12, 13, 14], 3)));
    assert_eq!(rows.few(1), Some((&[10, 11, 12, 13, 14, 15, 16, 17], 0)));
    assert_eq!(rows.few(2), None, "more than {FEW}");
    assert_eq!(rows.few(3), None, "nothing lies behind it");
}

/// Against a sorted set, with sizes about those of a word and of a level.
#[test]
fn ready_ranks_are_taken_the_first_one_first() {
    let mut seed = 20_261_122_u64;
    let mut draw = |below: u32| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from(seed >> 33).expect("31 bits") % below
    };
    for ranks in [1, 2, 63, 64, 65, 4095, 4096, 4097, 300_000] {
        let (mut ready, mut model) = (Ready::new(ranks as usize), BTreeSet::new());
        for _ in 0..300 {
            for _ in 0..draw(12) {
                let rank = draw(ranks);
                ready.put(rank);
                model.insert(rank);
            }
            let (wanted, mut taken) = (draw(12) as usize, Vec::new());
            ready.take_while(0, |rank| {
                let more = taken.len() < wanted;
                if more {
                    taken.push(rank);
                }
                more
            });
            let expected: Vec<u32> = model.iter().copied().take(wanted).collect();
            expected.iter().for_each(|rank| assert!(model.remove(rank)));
            assert_eq!(taken, expected, "of {ranks}");
        }
    }
}
