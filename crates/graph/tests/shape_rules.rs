//! Shape rules by name: both directions agree, and refusals have a class.

use proptest::prelude::*;
use std::sync::Arc;
use weft_graph::registry::{Call, ShapeRule};
use weft_graph::rules::{SHAPE_RULES, named_shapes};
use weft_graph::value::{Attributes, Shape, UNKNOWN, Value};
use weft_graph::{Op, Refusal};

fn attributes(items: &[(&str, Value)]) -> Attributes {
    Attributes::new(items.iter().map(|(name, value)| (Arc::from(*name), value.clone())))
}

fn ints(numbers: &[i64]) -> Value {
    Value::Tuple(numbers.iter().copied().map(Value::Int).collect())
}

fn result(rule: &str, given: &Attributes, operands: &[&[i64]]) -> Result<Shape, Refusal> {
    let mut operands: Vec<_> = operands.iter().map(|shape| Shape::new(shape.iter().copied())).collect();
    let found = named_shapes(rule).unwrap().result(given, &mut operands);
    found.map_err(|error| *error.downcast::<Refusal>().expect("a refusal with a class"))
}

#[test]
fn each_rule_has_a_name_of_its_own_and_is_found_by_it() {
    for rule in SHAPE_RULES {
        assert_eq!(SHAPE_RULES.iter().filter(|other| other.name == rule.name).count(), 1, "{}", rule.name);
        assert_eq!(named_shapes(rule.name).unwrap().name, rule.name);
    }
    assert!(named_shapes("no such rule").is_none());
}

#[test]
fn refusals_say_what_kind_of_mistake_it_is() {
    let of_axis = |axis: Value| attributes(&[("axis", axis)]);
    let is_axis = |found| matches!(found, Err(Refusal::Axis { axis: 2, rank: 2 }));
    assert!(is_axis(result("reduce", &of_axis(Value::Int(2)), &[&[2, 3]])));
    assert!(is_axis(result("concat", &of_axis(Value::Int(2)), &[&[2, 3], &[2, 3]])));
    assert!(is_axis(result("along", &of_axis(Value::Int(2)), &[&[2, 3]])));
    assert!(is_axis(result("take", &of_axis(Value::Int(2)), &[&[2, 3], &[4]])));
    assert!(matches!(result("reduce", &of_axis(Value::text("a")), &[&[2]]), Err(Refusal::Type(_))));
    assert!(matches!(result("reduce", &of_axis(ints(&[0, -2])), &[&[2, 3]]), Err(Refusal::Value(_))), "twice");
    assert!(matches!(result("matmul", &attributes(&[]), &[&[2, 3]]), Err(Refusal::Type(_))), "one operand");
    assert!(matches!(result("matmul", &attributes(&[]), &[&[2, 3], &[2, 3]]), Err(Refusal::Value(_))));
    for shape in [[-1, -1], [-2, 3]] {
        assert!(matches!(result("reshape", &attributes(&[("shape", ints(&shape))]), &[&[6]]), Err(Refusal::Value(_))));
    }
    assert!(matches!(result("reshape", &attributes(&[("shape", ints(&[0, -1]))]), &[&[0]]), Err(Refusal::Value(_))));
    assert!(matches!(result("extremum", &of_axis(Value::Int(0)), &[&[0, 3]]), Err(Refusal::Value(_))));
    assert_eq!(result("extremum", &of_axis(Value::Int(1)), &[&[0, 3]]).unwrap(), Shape::new([0]));
    let with_initial = of_axis(Value::Int(0)).with("initial", Value::Int(0));
    assert_eq!(result("extremum", &with_initial, &[&[0, 3]]).unwrap(), Shape::new([3]));
}

#[test]
fn numbers_among_the_operands_of_a_node_have_no_axes() {
    let op = Op::new("take");
    let template = Value::Tuple([Value::Input, Value::Int(3)].into());
    let given = attributes(&[("axis", Value::Int(0)), ("operands", template)]);
    let call = Call { op: &op, attributes: &given, shapes: &[], dtypes: &[] };
    let (mut ins, mut outs) = ([Shape::new([4, 5])], [Shape::unknown()]);
    named_shapes("take").unwrap().infer(&call, &mut ins, &mut outs).unwrap();
    assert_eq!(outs[0], Shape::new([5]));
}

fn shape() -> impl Strategy<Value = Vec<i64>> {
    prop::collection::vec(0_i64..4, 0..4)
}

/// A rule, its attributes and operands.
fn call() -> impl Strategy<Value = (&'static str, Attributes, Vec<Vec<i64>>)> {
    let of_one = (shape(), any::<prop::sample::Index>(), any::<bool>(), 0..8_usize);
    of_one.prop_map(|(x, place, flag, which)| {
        let at = i64::try_from(place.index(x.len().max(1))).unwrap();
        let axis = ("axis", Value::Int(at));
        let (rule, given) = match which {
            0 => ("reduce", vec![axis, ("keepdims", Value::Bool(flag))]),
            1 => ("along", vec![axis]),
            2 => ("expand_dims", vec![("axes", ints(&[at]))]),
            3 => ("permute_dims", vec![("axes", Value::None)]),
            4 => ("select", vec![axis]),
            5 => ("take", vec![axis]),
            6 => ("stack", vec![axis]),
            _ => ("concat", vec![axis]),
        };
        let count = if which < 5 { 1 } else { 2 };
        (rule, attributes(&given), vec![x; count])
    })
}

proptest! {
    /// What follows backwards from the result and some of the lengths contradicts nothing, and forwards it is the same.
    #[test]
    fn both_directions_agree((rule, given, operands) in call(), hidden in any::<u64>()) {
        let full: Vec<_> = operands.iter().map(|shape| Shape::new(shape.iter().copied())).collect();
        let Ok(found) = named_shapes(rule).unwrap().result(&given, &mut full.clone()) else { return Ok(()) };
        let op = Op::new(rule);
        let call = Call { op: &op, attributes: &given, shapes: &[], dtypes: &[] };
        let mut bit = 0;
        let mut ins: Vec<_> = full.iter().map(|shape| {
            Shape::new(shape.lengths().unwrap().iter().map(|&length| {
                bit += 1;
                if hidden >> bit & 1 == 1 { UNKNOWN } else { length }
            }))
        }).collect();
        let mut outs = [found.clone()];
        named_shapes(rule).unwrap().infer(&call, &mut ins, &mut outs).unwrap();
        prop_assert_eq!(&outs[0], &found);
        for (own, full) in ins.iter().zip(&full) {
            prop_assert!(own.joined(full).as_ref() == Some(full), "{} of {}", own, full);
        }
    }
}
