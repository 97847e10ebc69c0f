//! Machines for integers in the vectors of x86-64. Sums, differences and products have the same bits with a sign and
//! without. The order is that of signed integers.

#![allow(clippy::wildcard_imports)] // dozens of intrinsics

use super::machine::{each, machine};
use std::arch::x86_64::*;

machine! {
    int32_of_16, #[target_feature(enable = "avx512f,avx512dq")]
    vectors: __m512i, of 12, zero _mm512_setzero_si512(),
    load |from: *const u8| _mm512_loadu_si512(from.cast()), store |to: *mut u8, x| _mm512_storeu_si512(to.cast(), x);
    of two {
        add: |x, y| _mm512_add_epi32(x, y);
        subtract: |x, y| _mm512_sub_epi32(x, y);
        multiply: |x, y| _mm512_mullo_epi32(x, y);
        minimum: |x, y| _mm512_min_epi32(x, y);
        maximum: |x, y| _mm512_max_epi32(x, y);
        and: |x, y| _mm512_and_si512(x, y);
        or: |x, y| _mm512_or_si512(x, y);
        xor: |x, y| _mm512_xor_si512(x, y);
    }
    of one {
        copy: |x| x;
        negative: |x| _mm512_sub_epi32(_mm512_setzero_si512(), x);
        absolute: |x| _mm512_abs_epi32(x);
        not: |x| _mm512_xor_si512(x, _mm512_set1_epi64(-1));
    }
}

machine! {
    int64_of_8, #[target_feature(enable = "avx512f,avx512dq")]
    vectors: __m512i, of 12, zero _mm512_setzero_si512(),
    load |from: *const u8| _mm512_loadu_si512(from.cast()), store |to: *mut u8, x| _mm512_storeu_si512(to.cast(), x);
    of two {
        add: |x, y| _mm512_add_epi64(x, y);
        subtract: |x, y| _mm512_sub_epi64(x, y);
        multiply: |x, y| _mm512_mullo_epi64(x, y);
        minimum: |x, y| _mm512_min_epi64(x, y);
        maximum: |x, y| _mm512_max_epi64(x, y);
        and: |x, y| _mm512_and_si512(x, y);
        or: |x, y| _mm512_or_si512(x, y);
        xor: |x, y| _mm512_xor_si512(x, y);
    }
    of one {
        copy: |x| x;
        negative: |x| _mm512_sub_epi64(_mm512_setzero_si512(), x);
        absolute: |x| _mm512_abs_epi64(x);
        not: |x| _mm512_xor_si512(x, _mm512_set1_epi64(-1));
    }
}

/// The products of 64-bit integers, made from those of 32 bits, because AVX2 has no others.
#[target_feature(enable = "avx2")]
fn products(x: __m256i, y: __m256i) -> __m256i {
    let crossed = _mm256_mullo_epi32(x, _mm256_shuffle_epi32::<0b10_11_00_01>(y));
    let high = _mm256_add_epi32(crossed, _mm256_shuffle_epi32::<0b10_11_00_01>(crossed));
    _mm256_add_epi64(_mm256_mul_epu32(x, y), _mm256_slli_epi64::<32>(high))
}

machine! {
    int32_of_8, #[target_feature(enable = "avx2")]
    vectors: __m256i, of 6, zero _mm256_setzero_si256(),
    load |from: *const u8| _mm256_loadu_si256(from.cast()), store |to: *mut u8, x| _mm256_storeu_si256(to.cast(), x);
    of two {
        add: |x, y| _mm256_add_epi32(x, y);
        subtract: |x, y| _mm256_sub_epi32(x, y);
        multiply: |x, y| _mm256_mullo_epi32(x, y);
        minimum: |x, y| _mm256_min_epi32(x, y);
        maximum: |x, y| _mm256_max_epi32(x, y);
        and: |x, y| _mm256_and_si256(x, y);
        or: |x, y| _mm256_or_si256(x, y);
        xor: |x, y| _mm256_xor_si256(x, y);
    }
    of one {
        copy: |x| x;
        negative: |x| _mm256_sub_epi32(_mm256_setzero_si256(), x);
        absolute: |x| _mm256_abs_epi32(x);
        not: |x| _mm256_xor_si256(x, _mm256_set1_epi64x(-1));
    }
}

machine! {
    int64_of_4, #[target_feature(enable = "avx2")]
    vectors: __m256i, of 6, zero _mm256_setzero_si256(),
    load |from: *const u8| _mm256_loadu_si256(from.cast()), store |to: *mut u8, x| _mm256_storeu_si256(to.cast(), x);
    of two {
        add: |x, y| _mm256_add_epi64(x, y);
        subtract: |x, y| _mm256_sub_epi64(x, y);
        multiply: |x, y| products(x, y);
        minimum: |x, y| _mm256_blendv_epi8(x, y, _mm256_cmpgt_epi64(x, y));
        maximum: |x, y| _mm256_blendv_epi8(y, x, _mm256_cmpgt_epi64(x, y));
        and: |x, y| _mm256_and_si256(x, y);
        or: |x, y| _mm256_or_si256(x, y);
        xor: |x, y| _mm256_xor_si256(x, y);
    }
    of one {
        copy: |x| x;
        negative: |x| _mm256_sub_epi64(_mm256_setzero_si256(), x);
        absolute: |x| _mm256_blendv_epi8(x, _mm256_sub_epi64(_mm256_setzero_si256(), x), _mm256_cmpgt_epi64(_mm256_setzero_si256(), x));
        not: |x| _mm256_xor_si256(x, _mm256_set1_epi64x(-1));
    }
}
