//! Tells the sources of core that they are compiled for their search.

fn main() {
    println!("cargo::rustc-cfg=leasehold_search");
    println!("cargo::rerun-if-changed=build.rs");
}
