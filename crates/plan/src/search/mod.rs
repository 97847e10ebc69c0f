//! The exact search: depth first, over canonical placements alone.
//!
//! After M. D. Moffitt, "`MiniMalloc`: A Lightweight Memory Allocator for Hardware-Accelerated Machine Learning", ASPLOS 2023. The bounds that
//! keep the tree small:
//!
//! | rule | why nothing is lost |
//! |---|---|
//! | an item goes to the lowest place above all that conflicts with it and is placed | every placement can be pushed down to one of this kind |
//! | places do not fall along a branch; at equal places the order decides | each such placement is reached once, bottom up |
//! | no item is placed above where another one could end | that one could be put below it |
//! | a section's floor, what is still to come on it, and the capacity | what conflicts lies on top of each other |
//! | spans of time that no open item joins are searched by themselves | none of their items conflict |
//! | an item that no open one conflicts with is placed once | nothing depends on it |
//!
//! Several static orders take turns, each with twice the steps of the turn before.

mod branch;
mod state;

use crate::problem::Problem;
use branch::Tree;
use state::State;
use std::time::{Duration, Instant};

/// How a search ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Outcome {
    /// Places in units that fit.
    Found(Vec<u64>),
    /// There are none.
    Impossible,
    /// The steps or the time are used up.
    Spent,
    /// The caller gave up.
    Interrupted,
}

/// The orders that take turns: the first, second and third key; the larger goes first.
const ORDERS: [Comparisons; 3] =
    [[Key::Length, Key::Area, Key::Total], [Key::Total, Key::Area, Key::Length], [Key::Total, Key::Length, Key::Area]];

type Comparisons = [Key; 3];

/// The keys of items.
#[derive(Debug, Clone, Copy)]
enum Key {
    Area,
    Length,
    /// The most that is still to come in one of its sections.
    Total,
}

/// The limits of a search.
pub(crate) struct Limits<'a> {
    pub(super) steps: u64,
    pub(super) until: Option<Instant>,
    pub(super) interrupted: Option<&'a dyn Fn() -> bool>,
    /// When was last asked.
    asked: Instant,
}

impl<'a> Limits<'a> {
    pub(super) fn new(steps: u64, until: Option<Instant>, interrupted: Option<&'a dyn Fn() -> bool>) -> Self {
        Self { steps, until, interrupted, asked: Instant::now() }
    }

    /// Why the search must end, asked every few hundred steps.
    fn over(&mut self) -> Option<Outcome> {
        let now = Instant::now();
        if self.until.is_some_and(|until| now >= until) {
            return Some(Outcome::Spent);
        }
        if now - self.asked >= Duration::from_millis(20) {
            self.asked = now;
            if self.interrupted.is_some_and(|interrupted| interrupted()) {
                return Some(Outcome::Interrupted);
            }
        }
        None
    }
}

/// Looks for a placement within the capacity. Where there are too many conflicts to list it does not begin.
pub(crate) fn search(problem: &Problem, capacity: u64, limits: &mut Limits<'_>) -> Outcome {
    if !problem.lists_conflicts() {
        return Outcome::Spent;
    }
    let Some(mut state) = State::new(problem, capacity) else { return Outcome::Impossible };
    let mut tree = Tree::default();
    let mut turn = 2 * problem.items.len() as u64;
    loop {
        turn = turn.saturating_mul(2);
        for order in ORDERS {
            let steps = turn.min(limits.steps);
            let (outcome, used) = tree.search(&mut state, order, steps, limits);
            limits.steps -= used.min(limits.steps);
            if outcome != Outcome::Spent || limits.steps == 0 {
                return outcome;
            }
            if let Some(outcome) = limits.over() {
                return outcome;
            }
            state.clear();
        }
    }
}
