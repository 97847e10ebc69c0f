//! The graphs that replays go by.

use super::shape::Shape;

#[test]
fn a_chain_goes_on_without_being_counted() {
    let shape = Shape::new(3, 0, &[(0, 1), (1, 2)], &[], (&[0; 3], &[]), |_, _| true);
    assert_eq!([shape.next(0), shape.next(1), shape.next(2)], [Some(1), Some(2), None]);
}
