//! Ready steps by their rank: the order of their taking.
//!
//! A bit for each rank, above them a bit for each word that is not zero, and so on up to one word: so the first rank is
//! found, and a rank is put in, in as many looks as there are levels: four for a million steps. Steps taken in the
//! order of memory come into the cache before they are asked for.

/// Bits of a word, as a power of two.
const WORD: u32 = u64::BITS.ilog2();

/// A set of ranks.
pub(super) struct Ready {
    /// The bits of ranks first; of the last level there is one word.
    levels: Box<[Box<[u64]>]>,
}

impl Ready {
    /// One for so many ranks.
    pub(super) fn new(ranks: usize) -> Self {
        let mut levels = Vec::new();
        let mut words = ranks;
        loop {
            words = words.div_ceil(1 << WORD).max(1);
            levels.push(vec![0; words].into_boxed_slice());
            if words == 1 {
                return Self { levels: levels.into() };
            }
        }
    }

    /// Takes all ranks out.
    pub(super) fn clear(&mut self) {
        self.levels.iter_mut().for_each(|level| level.fill(0));
    }

    #[inline]
    pub(super) fn put(&mut self, rank: u32) {
        let mut at = rank as usize;
        for level in &mut self.levels {
            let word = &mut level[at >> WORD];
            let before = *word;
            *word |= 1 << (at & ((1 << WORD) - 1));
            if before != 0 {
                break;
            }
            at >>= WORD;
        }
    }

    /// Takes ranks out, the first one first, for as long as `takes` wants them; before all others the first one that is not
    /// below `from`, if there is one.
    #[inline]
    pub(super) fn take_while(&mut self, from: u32, mut takes: impl FnMut(u32) -> bool) {
        if from > 0
            && let Some(rank) = self.not_below(from)
        {
            if !takes(rank) {
                return;
            }
            self.take_out(rank);
        }
        while let Some(at) = self.first_word() {
            let mut word = self.levels[0][at];
            while word != 0 {
                #[allow(clippy::cast_possible_truncation)] // a rank
                if !takes((at as u32) << WORD | word.trailing_zeros()) {
                    self.levels[0][at] = word;
                    return;
                }
                word &= word - 1;
            }
            self.levels[0][at] = 0;
            self.clear_above(at);
        }
    }

    /// The first rank that is not below `from`.
    #[cold]
    fn not_below(&self, from: u32) -> Option<u32> {
        let first = from as usize >> WORD;
        (first..self.levels[0].len()).find_map(|at| {
            let mask = if at == first { u64::MAX << (from & ((1 << WORD) - 1)) } else { u64::MAX };
            let word = self.levels[0][at] & mask;
            #[allow(clippy::cast_possible_truncation)] // a rank
            (word != 0).then(|| (at as u32) << WORD | word.trailing_zeros())
        })
    }

    #[cold]
    fn take_out(&mut self, rank: u32) {
        let at = rank as usize >> WORD;
        self.levels[0][at] &= !(1 << (rank & ((1 << WORD) - 1)));
        if self.levels[0][at] == 0 {
            self.clear_above(at);
        }
    }

    /// The first word of ranks that is not zero.
    #[inline]
    fn first_word(&self) -> Option<usize> {
        let (ranks, above) = self.levels.split_first()?;
        let mut at = 0;
        for level in above.iter().rev() {
            let word = level[at];
            if word == 0 {
                return None; // at the top alone
            }
            at = at << WORD | word.trailing_zeros() as usize;
        }
        (ranks[at] != 0).then_some(at)
    }

    /// A word of ranks is zero now.
    #[inline]
    fn clear_above(&mut self, mut at: usize) {
        for level in &mut self.levels[1..] {
            let word = &mut level[at >> WORD];
            *word &= !(1 << (at & ((1 << WORD) - 1)));
            if *word != 0 {
                break;
            }
            at >>= WORD;
        }
    }
}
