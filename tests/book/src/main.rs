//! `cargo run -p leasehold-book`: builds the book into `target/book`, and writes the scripts that clients in other languages send.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    leasehold_book::write_scripts()?;
    let to = leasehold_book::root().join("target/book");
    Ok(leasehold_book::build(&to)?)
}
