//! `cargo run -p leasehold-book`: writes what is made from other files into `docs/`, and builds the book into `target/book`.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    leasehold_book::write_generated()?;
    let to = leasehold_book::root().join("target/book");
    Ok(leasehold_book::build(&to)?)
}
