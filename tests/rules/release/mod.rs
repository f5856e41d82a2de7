//! What is published is fit to be published: what the packages contain, and what they depend on.

mod dependencies;
mod image;
mod packages;
