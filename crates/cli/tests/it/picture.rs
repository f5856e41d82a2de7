//! Pictures of the screen for the documents: SVG, with whatever differs from run to run replaced.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use leasehold_testkit::terminal::{Color, Screen};

/// One cell: what is in it, and its colour, boldness, and whether it is dim or inverse.
type Cell = (char, &'static str, [bool; 3]);

const CELL: (usize, usize) = (8, 18);
const INK: &str = "#d8dee9";
const PAPER: &str = "#1f2430";

/// The times of all pictures, in the order in which they are needed.
const TIMES: [&str; 16] = [
    "0.2 s", "1 h 12 m", "23 s", "8.4 s", "21 s", "3 m 9 s", "17 s", "42 s", "26 s", "17 s", "42 s", "26 s", "38 s",
    "24 s", "12 s", "28 s",
];

/// What several pictures of one screen have in common.
#[derive(Default)]
pub(crate) struct Album {
    /// All tokens that any of them shows, so that one grant has one token in all of them.
    pub(crate) tokens: BTreeSet<String>,
    /// The times by row and column, so that a cell has one time in all of them.
    times: BTreeMap<(usize, usize), &'static str>,
}

/// The screen as an SVG.
pub(crate) fn svg(screen: &Screen, album: &mut Album) -> String {
    let (rows, columns) = (usize::from(screen.size().0.get()), usize::from(screen.size().1.get()));
    let (width, height) = ((columns + 2) * CELL.0, (rows + 1) * CELL.1);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" font-size=\"13\" \
         font-family=\"ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace\" xml:space=\"preserve\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"{PAPER}\"/>\n"
    );
    for row in 0..rows {
        let mut line = cells(screen, row, columns);
        replace_url(&mut line);
        replace_tokens(&mut line, &album.tokens);
        replace_times(&mut line, row, &mut album.times);
        draw(&mut svg, &line, row);
    }
    svg.push_str("</svg>\n");
    svg
}

/// The tokens on the screen: the only numbers that are so long.
pub(crate) fn tokens(screen: &Screen) -> BTreeSet<String> {
    let contents = screen.contents();
    let numbers = contents.split(|c: char| !c.is_ascii_digit()).filter(|number| number.len() > 12);
    numbers.map(str::to_owned).collect()
}

fn cells(screen: &Screen, row: usize, columns: usize) -> Vec<Cell> {
    let cell = |column: usize| {
        let cell = screen.cell(u16::try_from(row).ok()?, u16::try_from(column).ok()?)?;
        let colour = match cell.fgcolor() {
            Color::Idx(1 | 9) => "#ff6b6b",
            Color::Idx(3 | 11) => "#ffd166",
            Color::Idx(6 | 14) => "#5ccfe6",
            _ => INK,
        };
        Some((cell.contents().chars().next().unwrap_or(' '), colour, [cell.bold(), cell.dim(), cell.inverse()]))
    };
    (0..columns).map(|column| cell(column).unwrap_or((' ', INK, [false; 3]))).collect()
}

fn text(line: &[Cell]) -> Vec<char> {
    line.iter().map(|(letter, ..)| *letter).collect()
}

/// Puts `new` in the place of `line[from..to]`. What it is shorter or longer by is added to or taken from spaces: those before a
/// number in a column (`right`), else the next two or more behind it. Returns where `new` ends.
fn replace(line: &mut Vec<Cell>, (from, to): (usize, usize), right: bool, new: &str) -> usize {
    let (_, colour, style) = line[from];
    let letters = new.chars().map(|letter| (letter, colour, style));
    let whole = line.len();
    line.splice(from..to, letters);
    let end = from + new.chars().count();
    let at = if right {
        from
    } else {
        (end..line.len().saturating_sub(1))
            .find(|at| line[*at].0 == ' ' && line[at + 1].0 == ' ')
            .unwrap_or(line.len() - 1)
    };
    while line.len() < whole {
        line.insert(at, (' ', line[at].1, line[at].2));
    }
    let surplus = line.len() - whole;
    let first = if right { from - surplus } else { at };
    line.drain(first..first + surplus);
    if right { to } else { end }
}

fn replace_url(line: &mut Vec<Cell>) {
    let letters = text(line);
    let begins: Vec<char> = "redis-rw://".chars().collect();
    let Some(from) = letters.windows(begins.len()).position(|window| window == begins) else { return };
    let to = letters[from..].iter().position(|letter| *letter == ' ').map_or(letters.len(), |length| from + length);
    let (whole, (_, colour, style)) = (line.len(), line[from]);
    line.splice(from..to, "redis-rw://db1:6379".chars().map(|letter| (letter, colour, style)));
    line.resize(whole, (' ', INK, [false; 3]));
}

fn replace_tokens(line: &mut Vec<Cell>, tokens: &BTreeSet<String>) {
    for (rank, token) in tokens.iter().enumerate() {
        let wanted: Vec<char> = token.chars().collect();
        if let Some(from) = text(line).windows(wanted.len()).position(|window| window == wanted) {
            replace(
                line,
                (from, from + wanted.len()),
                false,
                &format!("{}", 1_812_345_678_901_248_u64 + rank as u64 * 421_568),
            );
        }
    }
}

/// Replaces durations such as `340 ms`, `2.4 s` and `1 m 20 s`.
fn replace_times(line: &mut Vec<Cell>, row: usize, times: &mut BTreeMap<(usize, usize), &'static str>) {
    let mut from = 0;
    while from < line.len() {
        let letters = text(line);
        let starts_word = from == 0 || !letters[from - 1].is_alphanumeric();
        let length = if starts_word { duration_at(&letters[from..]) } else { 0 };
        if length > 0 {
            let to = from + length;
            // Below the first line, which is a sentence; a box may reach up to the column.
            let right = row > 0 && [&[' ', ' '][..], &['│'], &['┐']].iter().any(|end| letters[..from].ends_with(end));
            let next = TIMES.get(times.len()).copied().unwrap_or("20 s");
            let new = *times.entry((row, if right { to } else { from })).or_insert(next);
            from = replace(line, (from, to), right, new);
        }
        from += 1;
    }
}

/// How many characters a duration at the beginning has.
fn duration_at(letters: &[char]) -> usize {
    let number = letters.iter().take_while(|letter| letter.is_ascii_digit() || **letter == '.').count();
    let rest = letters.get(number..).unwrap_or_default();
    let unit: String = rest.iter().skip(1).take_while(|letter| letter.is_alphabetic()).collect();
    if number == 0 || rest.first() != Some(&' ') || !["ms", "s", "m", "h", "d"].contains(&unit.as_str()) {
        return 0;
    }
    let length = number + 1 + unit.len();
    match letters.get(length) {
        Some(' ') => match duration_at(&letters[length + 1..]) {
            0 => length,
            more => length + 1 + more,
        },
        _ => length,
    }
}

/// One line of text, in runs of one style each, and of these each word at its place: no font has to be as wide as a cell.
fn draw(svg: &mut String, line: &[Cell], row: usize) {
    let mut from = 0;
    for run in line.chunk_by(|one, other| (one.1, one.2) == (other.1, other.2)) {
        let (_, colour, [bold, dim, inverse]) = run[0];
        let (begin, y) = (from, row * CELL.1 + CELL.1 / 2);
        from += run.len();
        if inverse {
            let (x, width, height) = ((begin + 1) * CELL.0, run.len() * CELL.0, CELL.1);
            let _ =
                writeln!(svg, "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{colour}\"/>");
        }
        let fill = if inverse { PAPER } else { colour };
        let weight = if bold { " font-weight=\"bold\"" } else { "" };
        let opacity = if dim { " opacity=\"0.55\"" } else { "" };
        let letters = text(run);
        let mut at = begin;
        for word in letters.chunk_by(|one, other| kind(*one) == kind(*other)) {
            let (x, length) = ((at + 1) * CELL.0, word.len() * CELL.0);
            at += word.len();
            let shown = word.iter().collect::<String>().replace('&', "&amp;").replace('<', "&lt;");
            let _ = match word[0] {
                ' ' => Ok(()),
                '─' => {
                    let middle = y + CELL.1 / 2;
                    writeln!(svg, "<rect x=\"{x}\" y=\"{middle}\" width=\"{length}\" height=\"1\" fill=\"{fill}\"/>")
                }
                _ => writeln!(
                    svg,
                    "<text x=\"{x}\" y=\"{}\" fill=\"{fill}\"{weight}{opacity} textLength=\"{length}\">{shown}</text>",
                    y + 13
                ),
            };
        }
    }
}

/// Spaces, lines, other parts of a box, and words.
fn kind(letter: char) -> u8 {
    match letter {
        ' ' => 0,
        '─' => 1,
        '\u{2500}'..='\u{257f}' => 2,
        _ => 3,
    }
}
