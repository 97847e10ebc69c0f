//! Numbers that look random and are the same in each run: for orders that are drawn.

/// A number that looks random, of a seed and a count: the generator `SplitMix64` of Steele, Lea and Flood (2014).
pub(crate) fn number(seed: u64, count: u64) -> u64 {
    let mut bits = seed.wrapping_add(count.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// One of the numbers below `end`, each as likely as any other, of such a number.
#[allow(clippy::cast_possible_truncation)] // it is below `end`
pub(crate) fn below(end: usize, random: u64) -> usize {
    ((u128::from(random) * end as u128) >> u64::BITS) as usize
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_number_below_an_end_is_drawn_about_as_often() {
        let mut drawn = [0; 7];
        (0..7000).for_each(|count| drawn[below(7, number(3, count))] += 1);
        assert!(drawn.iter().all(|&times| (850..1150).contains(&times)), "{drawn:?}");
        assert_ne!(number(3, 0), number(4, 0));
    }
}
