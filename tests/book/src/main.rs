//! `cargo run -p leasehold-book`: builds the book into `target/book`.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let to = leasehold_book::root().join("target/book");
    Ok(leasehold_book::build(&to)?)
}
