//! Whether what pages link to is there. Links out of the repository are looked at for their form only.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::REPOSITORY;

/// What a page links to, and which names it has for links to lead to.
#[derive(Debug, Default)]
struct Page {
    links: Vec<String>,
    names: Vec<String>,
}

/// Links of the HTML pages below a folder that lead to no page, file, picture or heading: of the book, or of the repository
/// whose root is given. Each as `page: link: what is wrong`.
///
/// # Errors
/// When the folder cannot be read.
pub fn broken_links(book: &Path, repository: &Path) -> io::Result<Vec<String>> {
    let book = &book.canonicalize()?;
    let mut pages = HashMap::new();
    read_pages(book, &mut pages)?;
    let mut broken = Vec::new();
    for (path, page) in &pages {
        for link in &page.links {
            if let Err(why) = look(path, link, &pages, repository) {
                broken.push(format!("{}: {link}: {why}", path.strip_prefix(book).unwrap_or(path).display()));
            }
        }
    }
    broken.sort();
    Ok(broken)
}

fn look(page: &Path, link: &str, pages: &HashMap<PathBuf, Page>, repository: &Path) -> Result<(), String> {
    let (target, name) = link.split_once('#').map_or((link, None), |(target, name)| (target, Some(name)));
    if let Some(file) = target.strip_prefix(REPOSITORY) {
        return in_repository(&repository.join(file), name);
    }
    if let Some(rest) = target.split_once(':').map(|(scheme, rest)| (scheme, rest.trim_start_matches('/'))) {
        return match rest {
            ("https", rest) if rest.contains('.') && !rest.contains(char::is_whitespace) => Ok(()),
            ("data", _) => Ok(()),
            _ => Err("the form of a link out of the repository is https://…".into()),
        };
    }
    let to = if target.is_empty() { page.to_path_buf() } else { page.with_file_name(target) };
    let to = to.canonicalize().map_err(|_| "there is no such page or file in the book")?;
    match (pages.get(&to), name) {
        (None, None) if to.is_file() => Ok(()),
        (None, _) => Err("it is no page of the book".into()),
        (Some(_), None | Some("")) => Ok(()),
        (Some(page), Some(name)) if page.names.iter().any(|known| known == name) => Ok(()),
        (Some(_), Some(_)) => Err("that page has no such heading".into()),
    }
}

fn in_repository(file: &Path, heading: Option<&str>) -> Result<(), String> {
    if !file.exists() {
        return Err("there is no such file in the repository".into());
    }
    let Some(heading) = heading else { return Ok(()) };
    let text = fs::read_to_string(file).map_err(|why| why.to_string())?;
    let found = headings(&text).any(|known| known == heading);
    if found { Ok(()) } else { Err("that file has no such heading".into()) }
}

/// The names under which a forge shows the headings of a Markdown file.
fn headings(text: &str) -> impl Iterator<Item = String> {
    let titles = text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    titles.map(|title| {
        let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).flat_map(char::to_lowercase).collect()
    })
}

impl Page {
    fn read(html: &str) -> Self {
        let mut page = Self::default();
        for tag in html.split('<').skip(1).filter_map(|rest| rest.split('>').next()) {
            let attribute =
                |name: &str| tag.split_once(&format!(" {name}=\"")).and_then(|(_, rest)| rest.split('"').next());
            page.links.extend(["href", "src"].into_iter().filter_map(attribute).map(|link| link.replace("&amp;", "&")));
            page.names.extend(["id", "name"].into_iter().filter_map(attribute).map(str::to_owned));
        }
        page
    }
}

fn read_pages(folder: &Path, pages: &mut HashMap<PathBuf, Page>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            read_pages(&path, pages)?;
        } else if path.extension().is_some_and(|extension| extension == "html") {
            let page = Page::read(&fs::read_to_string(&path)?);
            pages.insert(path, page);
        }
    }
    Ok(())
}
