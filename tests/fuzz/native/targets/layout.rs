//! A layout is refused, or all its elements lie inside of the buffer.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;
use weft_array::{Array, Buffer, DType, Layout};
use weft_engine::{Engine, Settings};

static ENGINE: LazyLock<Engine> =
    LazyLock::new(|| Engine::new(Settings { workers: Some(1), ..Settings::default() }).expect("valid settings"));

const DTYPES: [DType; 5] = [DType::Bool, DType::Int16, DType::Float32, DType::Float64, DType::Complex128];

/// Elements that are looked at one by one.
const FEW: usize = 4096;

/// Numbers that are small, or near the ends of their types.
fn number(bytes: [u8; 3]) -> u64 {
    let small = u64::from(bytes[2]) % 80;
    match bytes[0] % 5 {
        0 => (1 << (bytes[1] % 64)) + small,
        1 => (1_u64 << (bytes[1] % 64)).wrapping_sub(small),
        2 => small.wrapping_neg(),
        _ => small,
    }
}

fuzz_target!(|data: &[u8]| {
    let (head, rest) = data.split_at(data.len().min(5));
    let &[kind, long, first, second, third] = head else { return };
    let dtype = DTYPES[usize::from(kind) % DTYPES.len()];
    let axes = rest.chunks_exact(6).take(20);
    let layout = Layout {
        shape: axes.clone().map(|axis| number([axis[0], axis[1], axis[2]]) as usize).collect(),
        strides: axes.map(|axis| number([axis[3], axis[4], axis[5]]).cast_signed() as isize).collect(),
        offset: number([first, second, third]) as usize,
    };
    let buffer = Buffer::new(&ENGINE, usize::from(long) * 8);
    let bytes = buffer.bytes();
    let shape = layout.shape.clone();
    let Ok(array) = Array::on(buffer, layout, dtype) else { return };
    let range = array.range();
    assert!(range.start <= range.end && range.end <= bytes, "{range:?} of {bytes}");
    let layout = array.layout();
    let size = layout.size();
    if size > FEW {
        return;
    }
    let mut seen = vec![0_u32; bytes];
    for at in 0..size {
        let (mut rest, mut place) = (at, layout.offset.cast_signed());
        for (&length, &stride) in shape.iter().zip(&layout.strides).rev() {
            place += stride * (rest % length).cast_signed();
            rest /= length;
        }
        let place = usize::try_from(place).expect("inside");
        assert!(place >= range.start && place + dtype.size() <= range.end, "element {at} of {layout:?} is outside");
        seen[place..place + dtype.size()].iter_mut().for_each(|count| *count += 1);
    }
    if layout.is_dense(dtype.size()) && size > 0 {
        assert!(seen[range].iter().all(|count| *count == 1), "{layout:?} is not dense");
    }
    if layout.is_contiguous(dtype.size()) && size > 0 {
        assert!(layout.is_dense(dtype.size()), "{layout:?} has gaps");
    }
});
