//! Machines for floating-point numbers in the vectors of x86-64.
//!
//! Sums and products are written as instructions: of two NaNs the first operand's bits come out, and a compiler may
//! swap the operands of a commutative op. It cannot swap those of a difference or a quotient. Even the assembler swaps them
//! where the instruction then takes two bytes of VEX instead of three, unless it is told that it has three.

#![allow(clippy::wildcard_imports)] // dozens of intrinsics

use super::machine::{each, machine};
use std::arch::asm;
use std::arch::x86_64::*;

/// A sum or a product of two vectors with operands in this order, by an instruction of three operands.
macro_rules! ordered {
    ($instruction:literal, $class:ident, $left:expr, $right:expr) => {{
        let (left, right) = ($left, $right);
        let found;
        asm!(
            concat!($instruction, " {found}, {left}, {right}"),
            found = lateout($class) found, left = in($class) left, right = in($class) right,
            options(pure, nomem, nostack, preserves_flags)
        );
        found
    }};
}

/// The same by an instruction of two operands, which overwrites the first.
macro_rules! ordered_in_place {
    ($instruction:literal, $left:expr, $right:expr) => {{
        let mut found = $left;
        asm!(
            concat!($instruction, " {found}, {right}"),
            found = inout(xmm_reg) found, right = in(xmm_reg) $right,
            options(pure, nomem, nostack, preserves_flags)
        );
        found
    }};
}

machine! {
    float32_of_16, #[target_feature(enable = "avx512f")]
    vectors: __m512, of 12, zero _mm512_setzero_ps(),
    load |from: *const u8| _mm512_loadu_ps(from.cast()), store |to: *mut u8, x| _mm512_storeu_ps(to.cast(), x);
    of two {
        add: |x, y| ordered!("vaddps", zmm_reg, x, y);
        subtract: |x, y| _mm512_sub_ps(x, y);
        multiply: |x, y| ordered!("vmulps", zmm_reg, x, y);
        divide: |x, y| _mm512_div_ps(x, y);
        minimum: |x, y| _mm512_mask_mov_ps(_mm512_min_ps(x, y), _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(x, x), x);
        maximum: |x, y| _mm512_mask_mov_ps(_mm512_max_ps(x, y), _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(x, x), x);
    }
    of one {
        copy: |x| x;
        negative: |x| _mm512_castsi512_ps(_mm512_xor_si512(_mm512_castps_si512(x), _mm512_set1_epi32(i32::MIN)));
        absolute: |x| _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(i32::MAX)));
        sqrt: |x| _mm512_sqrt_ps(x);
    }
}

machine! {
    float64_of_8, #[target_feature(enable = "avx512f")]
    vectors: __m512d, of 12, zero _mm512_setzero_pd(),
    load |from: *const u8| _mm512_loadu_pd(from.cast()), store |to: *mut u8, x| _mm512_storeu_pd(to.cast(), x);
    of two {
        add: |x, y| ordered!("vaddpd", zmm_reg, x, y);
        subtract: |x, y| _mm512_sub_pd(x, y);
        multiply: |x, y| ordered!("vmulpd", zmm_reg, x, y);
        divide: |x, y| _mm512_div_pd(x, y);
        minimum: |x, y| _mm512_mask_mov_pd(_mm512_min_pd(x, y), _mm512_cmp_pd_mask::<_CMP_UNORD_Q>(x, x), x);
        maximum: |x, y| _mm512_mask_mov_pd(_mm512_max_pd(x, y), _mm512_cmp_pd_mask::<_CMP_UNORD_Q>(x, x), x);
    }
    of one {
        copy: |x| x;
        negative: |x| _mm512_castsi512_pd(_mm512_xor_si512(_mm512_castpd_si512(x), _mm512_set1_epi64(i64::MIN)));
        absolute: |x| _mm512_castsi512_pd(_mm512_and_si512(_mm512_castpd_si512(x), _mm512_set1_epi64(i64::MAX)));
        sqrt: |x| _mm512_sqrt_pd(x);
    }
}

machine! {
    float32_of_8, #[target_feature(enable = "avx2")]
    vectors: __m256, of 6, zero _mm256_setzero_ps(),
    load |from: *const u8| _mm256_loadu_ps(from.cast()), store |to: *mut u8, x| _mm256_storeu_ps(to.cast(), x);
    of two {
        add: |x, y| ordered!("{{vex3}} vaddps", ymm_reg, x, y);
        subtract: |x, y| _mm256_sub_ps(x, y);
        multiply: |x, y| ordered!("{{vex3}} vmulps", ymm_reg, x, y);
        divide: |x, y| _mm256_div_ps(x, y);
        minimum: |x, y| _mm256_blendv_ps(_mm256_min_ps(x, y), x, _mm256_cmp_ps::<_CMP_UNORD_Q>(x, x));
        maximum: |x, y| _mm256_blendv_ps(_mm256_max_ps(x, y), x, _mm256_cmp_ps::<_CMP_UNORD_Q>(x, x));
    }
    of one {
        copy: |x| x;
        negative: |x| _mm256_xor_ps(x, _mm256_set1_ps(-0.0));
        absolute: |x| _mm256_andnot_ps(_mm256_set1_ps(-0.0), x);
        sqrt: |x| _mm256_sqrt_ps(x);
    }
}

machine! {
    float64_of_4, #[target_feature(enable = "avx2")]
    vectors: __m256d, of 6, zero _mm256_setzero_pd(),
    load |from: *const u8| _mm256_loadu_pd(from.cast()), store |to: *mut u8, x| _mm256_storeu_pd(to.cast(), x);
    of two {
        add: |x, y| ordered!("{{vex3}} vaddpd", ymm_reg, x, y);
        subtract: |x, y| _mm256_sub_pd(x, y);
        multiply: |x, y| ordered!("{{vex3}} vmulpd", ymm_reg, x, y);
        divide: |x, y| _mm256_div_pd(x, y);
        minimum: |x, y| _mm256_blendv_pd(_mm256_min_pd(x, y), x, _mm256_cmp_pd::<_CMP_UNORD_Q>(x, x));
        maximum: |x, y| _mm256_blendv_pd(_mm256_max_pd(x, y), x, _mm256_cmp_pd::<_CMP_UNORD_Q>(x, x));
    }
    of one {
        copy: |x| x;
        negative: |x| _mm256_xor_pd(x, _mm256_set1_pd(-0.0));
        absolute: |x| _mm256_andnot_pd(_mm256_set1_pd(-0.0), x);
        sqrt: |x| _mm256_sqrt_pd(x);
    }
}

/// The second operand where a mask has no bits, the first where it has all.
macro_rules! chosen {
    ($mask:expr, $left:expr, $right:expr, $and:ident, $and_not:ident, $or:ident) => {{
        let mask = $mask;
        $or($and(mask, $left), $and_not(mask, $right))
    }};
}

machine! {
    float32_of_4, #[target_feature(enable = "sse2")]
    vectors: __m128, of 6, zero _mm_setzero_ps(),
    load |from: *const u8| _mm_loadu_ps(from.cast()), store |to: *mut u8, x| _mm_storeu_ps(to.cast(), x);
    of two {
        add: |x, y| ordered_in_place!("addps", x, y);
        subtract: |x, y| _mm_sub_ps(x, y);
        multiply: |x, y| ordered_in_place!("mulps", x, y);
        divide: |x, y| _mm_div_ps(x, y);
        minimum: |x, y| chosen!(_mm_cmpunord_ps(x, x), x, _mm_min_ps(x, y), _mm_and_ps, _mm_andnot_ps, _mm_or_ps);
        maximum: |x, y| chosen!(_mm_cmpunord_ps(x, x), x, _mm_max_ps(x, y), _mm_and_ps, _mm_andnot_ps, _mm_or_ps);
    }
    of one {
        copy: |x| x;
        negative: |x| _mm_xor_ps(x, _mm_set1_ps(-0.0));
        absolute: |x| _mm_andnot_ps(_mm_set1_ps(-0.0), x);
        sqrt: |x| _mm_sqrt_ps(x);
    }
}

machine! {
    float64_of_2, #[target_feature(enable = "sse2")]
    vectors: __m128d, of 6, zero _mm_setzero_pd(),
    load |from: *const u8| _mm_loadu_pd(from.cast()), store |to: *mut u8, x| _mm_storeu_pd(to.cast(), x);
    of two {
        add: |x, y| ordered_in_place!("addpd", x, y);
        subtract: |x, y| _mm_sub_pd(x, y);
        multiply: |x, y| ordered_in_place!("mulpd", x, y);
        divide: |x, y| _mm_div_pd(x, y);
        minimum: |x, y| chosen!(_mm_cmpunord_pd(x, x), x, _mm_min_pd(x, y), _mm_and_pd, _mm_andnot_pd, _mm_or_pd);
        maximum: |x, y| chosen!(_mm_cmpunord_pd(x, x), x, _mm_max_pd(x, y), _mm_and_pd, _mm_andnot_pd, _mm_or_pd);
    }
    of one {
        copy: |x| x;
        negative: |x| _mm_xor_pd(x, _mm_set1_pd(-0.0));
        absolute: |x| _mm_andnot_pd(_mm_set1_pd(-0.0), x);
        sqrt: |x| _mm_sqrt_pd(x);
    }
}
