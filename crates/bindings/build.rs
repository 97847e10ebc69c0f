//! Tells the crate which Python and which platform it is built for.

fn main() {
    pyo3_build_config::use_pyo3_cfgs();
    let target = std::env::var("TARGET").expect("cargo sets it");
    println!("cargo:rustc-env=WEFT_TARGET={target}");
}
