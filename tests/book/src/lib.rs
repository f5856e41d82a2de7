//! Builds the book of `docs/` with mdBook, and finds what its pages link to that is not there.

mod figures;
mod links;

use std::fs;
use std::path::{Path, PathBuf};

use mdbook_driver::MDBook;
use mdbook_driver::book::Book;
use mdbook_driver::errors::Result;
use mdbook_preprocessor::{Preprocessor, PreprocessorContext};

pub use figures::with_figures;
pub use links::broken_links;

/// Where the files of the repository are shown that are not a part of the book.
pub const REPOSITORY: &str = "https://github.com/leasehold/leasehold/blob/main/";

/// The pictures that the documents of the repository show and that are not in `docs/`.
const PICTURES: &str = "benches/plots";

/// The chapter with the figures of the last run of chaos, and the report of that run.
pub const PROOF: [&str; 2] = ["docs/proof.md", "docs/proof.json"];

/// Writes the figures into the first file of [`PROOF`].
///
/// # Errors
/// When a file cannot be read or written, or the report is none.
pub fn write_generated() -> Result<()> {
    let [chapter, report] = PROOF.map(|file| root().join(file));
    let text = with_figures(&fs::read_to_string(&chapter)?, &fs::read_to_string(report)?)?;
    Ok(fs::write(chapter, text)?)
}

/// Builds the book into this folder, which is emptied first.
///
/// # Errors
/// When a chapter of `SUMMARY.md` is missing, or a file cannot be read or written.
pub fn build(to: &Path) -> Result<()> {
    let mut book = MDBook::load(root().join("docs"))?;
    book.config.build.build_dir = to.to_path_buf();
    book.with_preprocessor(OutOfTheBook).build()?;
    let pictures = to.join(PICTURES);
    fs::create_dir_all(&pictures)?;
    for picture in fs::read_dir(root().join(PICTURES))? {
        let picture = picture?;
        fs::copy(picture.path(), pictures.join(picture.file_name()))?;
    }
    Ok(())
}

/// The root of the workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).map(Path::to_path_buf).unwrap_or_default()
}

/// Has links of the chapters to other files of the repository lead to where these are shown.
struct OutOfTheBook;

impl Preprocessor for OutOfTheBook {
    fn name(&self) -> &'static str {
        "out-of-the-book"
    }

    fn run(&self, _: &PreprocessorContext, mut book: Book) -> Result<Book> {
        book.for_each_chapter_mut(|chapter| {
            let pictures = chapter.content.replace(&format!("](../{PICTURES}/"), &format!("]({PICTURES}/"));
            chapter.content = pictures.replace("](../", &format!("]({REPOSITORY}"));
        });
        Ok(book)
    }
}

#[doc = include_str!("../../../docs/primitives.md")]
mod primitives {}
