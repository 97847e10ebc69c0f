//! Loops meet operands of their own types alone: a push that would read or write past an end is refused.

use std::ffi::{c_char, c_void};
use weft_array::{
    Array, ArrayError, DType, Layout, Operand, Scalar, StridedLoop, cast_loop, copy_loop, push_elementwise,
    push_matmul, push_reduce,
};
use weft_engine::{Engine, PushOptions, Settings, Wait};

unsafe extern "C" fn never(_: *mut *mut c_char, _: *const isize, _: *const isize, _: *mut c_void) {}

fn engine() -> Engine {
    Engine::new(Settings { workers: Some(1), ..Settings::default() }).expect("valid settings")
}

fn array(engine: &Engine, shape: &[usize], dtype: DType) -> Array {
    let array = Array::empty(engine, shape, dtype).expect("a small array");
    let zero = if dtype == DType::Float64 { Scalar::Float(0.0) } else { Scalar::Int(0) };
    push_elementwise(copy_loop(dtype), &[&array], &[Operand::Scalar(zero, dtype)], PushOptions::default())
        .expect("it fits");
    array
}

fn refused(outcome: Result<(), ArrayError>) -> String {
    outcome.expect_err("the types do not fit").to_string()
}

#[test]
fn element_by_element() {
    let engine = engine();
    let (bytes, wide) = (array(&engine, &[8], DType::UInt8), array(&engine, &[8], DType::Float64));
    let push = |to: &Array, from: &Array| {
        push_elementwise(copy_loop(DType::Float64), &[to], &[Operand::Array(from)], PushOptions::default())
    };
    assert_eq!(refused(push(&bytes, &wide)), "operand 1 of the loop is float64, not uint8");
    assert_eq!(refused(push(&wide, &bytes)), "operand 0 of the loop is float64, not uint8");
    let scalar = [Operand::Scalar(Scalar::Int(1), DType::Int32)];
    let scalar = push_elementwise(copy_loop(DType::Float64), &[&wide], &scalar, PushOptions::default());
    assert_eq!(refused(scalar), "operand 0 of the loop is float64, not int32");
    assert_eq!(bytes.version(), 1, "a refused push changes nothing");
    push(&wide, &array(&engine, &[8], DType::Float64)).expect("it fits");
    wide.wait_to_read(&mut Wait::default()).expect("it has run");
}

#[test]
fn reductions_and_products() {
    let engine = engine();
    // SAFETY: it touches nothing.
    let kernel = unsafe { StridedLoop::new(never, std::ptr::null_mut(), &[DType::Float64; 2], &[DType::Float64]) };
    let kernel = kernel.expect("three operands");
    let (ints, one) = (array(&engine, &[2, 2], DType::Int8), array(&engine, &[1, 2], DType::Float64));
    let floats = array(&engine, &[2, 2], DType::Float64);
    assert!(
        refused(push_reduce(kernel, None, &one, &ints, &[0], PushOptions::default())).contains("float64, not int8")
    );
    let product = |left: &Array, out: &Array| push_matmul(kernel, out, left, &floats, PushOptions::default());
    assert!(refused(product(&ints, &array(&engine, &[2, 2], DType::Float64))).contains("float64, not int8"));
    assert!(refused(product(&floats, &ints)).contains("float64, not int8"));
    // An axis twice, or one that is not there, would walk out of the input.
    for axes in [&[0, 0][..], &[2][..]] {
        assert!(push_reduce(kernel, None, &one, &floats, axes, PushOptions::default()).is_err());
    }
}

#[test]
fn outputs_that_overlap() {
    let engine = engine();
    // SAFETY: it touches nothing.
    let kernel = unsafe { StridedLoop::new(never, std::ptr::null_mut(), &[DType::UInt8], &[DType::UInt8; 2]) };
    let kernel = kernel.expect("three operands");
    let both = array(&engine, &[8], DType::UInt8);
    let part = |offset| {
        let layout = Layout { shape: [4].as_slice().into(), strides: [1].as_slice().into(), offset };
        Array::on(both.buffer().clone(), layout, DType::UInt8).expect("inside")
    };
    let (input, options) = (array(&engine, &[4], DType::UInt8), PushOptions::default);
    let push = |one: &Array, two: &Array| push_elementwise(kernel, &[one, two], &[Operand::Array(&input)], options());
    assert!(refused(push(&part(0), &part(3))).contains("two outputs overlap"));
    push(&part(0), &part(4)).expect("they are apart");
}

#[test]
fn a_loop_of_too_many_operands() {
    // SAFETY: it touches nothing.
    let kernel = unsafe { StridedLoop::new(never, std::ptr::null_mut(), &[DType::UInt8; 8], &[DType::UInt8]) };
    assert!(kernel.is_none());
}

#[test]
fn an_input_that_is_the_output_as_other_elements() {
    let engine = engine();
    let wide = array(&engine, &[4], DType::Float64);
    let narrow = |size: i64| {
        let layout = Layout { shape: [4].as_slice().into(), strides: [4].as_slice().into(), offset: 0 };
        let ints = Array::on(wide.buffer().clone(), layout, DType::Int32).expect("inside");
        let number = [Operand::Scalar(Scalar::Int(size), DType::Int32)];
        push_elementwise(copy_loop(DType::Int32), &[&ints], &number, PushOptions::default()).expect("it fits");
        ints
    };
    let ints = narrow(7);
    let kernel = cast_loop(DType::Int32, DType::Float64).expect("a cast of numbers");
    push_elementwise(kernel, &[&wide], &[Operand::Array(&ints)], PushOptions::default()).expect("it is copied first");
    assert_eq!(values(&wide), [7.0_f64.to_bits(); 4], "an element was written before it was read");
    // The same elements are read before they are written, one by one.
    push_elementwise(copy_loop(DType::Float64), &[&wide], &[Operand::Array(&wide)], PushOptions::default())
        .expect("it fits");
    assert_eq!(values(&wide), [7.0_f64.to_bits(); 4]);
}

/// The bits of four numbers.
fn values(array: &Array) -> [u64; 4] {
    array.wait_to_read(&mut Wait::default()).expect("it has run");
    let start = array.buffer().start().expect("it is there").cast_const();
    // SAFETY: the bytes of four numbers of an array that was waited for.
    let number = |at: usize| unsafe { start.add(8 * at).cast::<[u8; 8]>().read() };
    std::array::from_fn(|at| u64::from_ne_bytes(number(at)))
}
