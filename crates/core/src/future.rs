use std::pin::Pin;

/// A future on the heap, as the functions of a crate around a driver answer it.
///
/// Behind the box the code of the driver is compiled once, in that crate. An `async fn` would be compiled again, with
/// all that it awaits, in each crate that awaits it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
