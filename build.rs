//! Options for the linker.

use std::env;

/// Without optimization 265,000 addresses in the binary depend on where it is loaded, and most of the time of a start
/// goes to them. The tests start it thousands of times, so an unoptimized binary is loaded at one place. Where a
/// release is loaded stays random (ld(1), -pie).
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, wanted: &str| env::var(name).is_ok_and(|value| value == wanted);
    if is("PROFILE", "debug") && is("CARGO_CFG_TARGET_ENV", "gnu") {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
