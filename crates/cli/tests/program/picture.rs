//! Pictures of the screen for the documents: SVG, with whatever differs from run to run replaced.

use std::collections::BTreeSet;
use std::fmt::Write;

use leasehold_testkit::terminal::{Color, Screen};

/// One cell: what is in it, and its colour, boldness, and whether it is dim or inverse.
type Cell = (char, &'static str, [bool; 3]);

const CELL: (usize, usize) = (8, 18);
const INK: &str = "#d8dee9";
const PAPER: &str = "#1f2430";

/// The screen as an SVG. `tokens` has all tokens that any picture shows, so that one grant has one token in all of them.
pub(crate) fn svg(screen: &Screen, tokens: &BTreeSet<String>) -> String {
    let (rows, columns) = (usize::from(screen.size().0.get()), usize::from(screen.size().1.get()));
    let (width, height) = ((columns + 2) * CELL.0, (rows + 1) * CELL.1);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" font-size=\"13\" \
         font-family=\"ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace\" xml:space=\"preserve\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"{PAPER}\"/>\n"
    );
    let mut times =
        ["0.2 s", "1 h 12 m", "23 s", "8.4 s", "21 s", "3 m 9 s", "17 s", "42 s", "26 s", "5 m 30 s", "9.1 s"].iter();
    for row in 0..rows {
        let mut line = cells(screen, row, columns);
        replace_url(&mut line);
        replace_tokens(&mut line, tokens);
        replace_times(&mut line, &mut || times.next().copied().unwrap_or("20 s"));
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
/// number in a column, which is read from the right, else the next two or more behind it. Returns where `new` ends.
fn replace(line: &mut Vec<Cell>, (from, to): (usize, usize), new: &str) -> usize {
    let (_, colour, style) = line[from];
    let letters = new.chars().map(|letter| (letter, colour, style));
    let whole = line.len();
    line.splice(from..to, letters);
    let in_column = text(line)[..from].ends_with(&[' ', ' ']);
    let end = from + new.chars().count();
    let at = if in_column {
        from - 1
    } else {
        (end..line.len().saturating_sub(1))
            .find(|at| line[*at].0 == ' ' && line[at + 1].0 == ' ')
            .unwrap_or(line.len() - 1)
    };
    while line.len() < whole {
        line.insert(at, (' ', line[at].1, line[at].2));
    }
    let surplus = line.len() - whole;
    let first = if in_column { from - surplus } else { at };
    line.drain(first..first + surplus);
    if in_column { to } else { end }
}

fn replace_url(line: &mut Vec<Cell>) {
    let letters = text(line);
    let begins: Vec<char> = "redis-rw://".chars().collect();
    let Some(from) = letters.windows(begins.len()).position(|window| window == begins) else { return };
    let to = letters[from..].iter().position(|letter| *letter == ' ').map_or(letters.len(), |length| from + length);
    replace(line, (from, to), "redis-rw://db1:6379");
}

fn replace_tokens(line: &mut Vec<Cell>, tokens: &BTreeSet<String>) {
    for (rank, token) in tokens.iter().enumerate() {
        let wanted: Vec<char> = token.chars().collect();
        if let Some(from) = text(line).windows(wanted.len()).position(|window| window == wanted) {
            replace(
                line,
                (from, from + wanted.len()),
                &format!("{}", 1_812_345_678_901_248_u64 + rank as u64 * 421_568),
            );
        }
    }
}

/// Replaces durations such as `340 ms`, `2.4 s` and `1 m 20 s`.
fn replace_times(line: &mut Vec<Cell>, next: &mut dyn FnMut() -> &'static str) {
    let mut from = 0;
    while from < line.len() {
        let letters = text(line);
        let starts_word = from == 0 || letters[from - 1] == ' ';
        let length = if starts_word { duration_at(&letters[from..]) } else { 0 };
        if length > 0 {
            from = replace(line, (from, from + length), next());
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

/// One line of text, in runs of one style each.
fn draw(svg: &mut String, line: &[Cell], row: usize) {
    let mut from = 0;
    for run in line.chunk_by(|one, other| (one.1, one.2) == (other.1, other.2)) {
        let (_, colour, [bold, dim, inverse]) = run[0];
        let letters: String = text(run).iter().collect();
        let (x, y) = ((from + 1) * CELL.0, row * CELL.1 + CELL.1 / 2);
        from += run.len();
        if inverse {
            let (width, height) = (run.len() * CELL.0, CELL.1);
            let _ =
                writeln!(svg, "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{colour}\"/>");
        }
        let shown = letters.trim_end();
        if shown.trim().is_empty() {
            continue;
        }
        let fill = if inverse { PAPER } else { colour };
        let weight = if bold { " font-weight=\"bold\"" } else { "" };
        let opacity = if dim { " opacity=\"0.55\"" } else { "" };
        let (length, base) = (shown.chars().count() * CELL.0, y + 13);
        let shown = shown.replace('&', "&amp;").replace('<', "&lt;");
        let _ = writeln!(
            svg,
            "<text x=\"{x}\" y=\"{base}\" fill=\"{fill}\"{weight}{opacity} textLength=\"{length}\">{shown}</text>"
        );
    }
}
