//! The pictures of the README are what the program draws: SVG, of these rows.

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use leasehold::{FencingToken, Holder, Holders, LockKey, Mode};
use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};

use super::grid::Look;
use super::row::Row;
use super::samples::{drawn, now, press};
use super::state::State;

/// Set, the pictures are written and not compared.
const WRITE: &str = "LEASEHOLD_PICTURES";

const CELL: (usize, usize) = (8, 18);
const INK: &str = "#d8dee9";
const PAPER: &str = "#1f2430";

/// The age of the answer.
const AGE: Duration = Duration::from_millis(200);

#[test]
fn the_pictures_are_what_the_program_shows() {
    let look = Look {
        store: "redis-rw://db1:6379".to_owned(),
        prefix: String::new(),
        interval: Duration::from_secs(1),
        colour: true,
    };
    let mut state = State::default();
    state.answered(Ok(rows()), now().since.saturating_sub(AGE), Duration::ZERO);
    for (name, keys) in [("table", "jj"), ("force-release", "x"), ("details", "nj\n")] {
        press(&mut state, keys);
        let picture = svg(&drawn(&mut state, &look, (118, 16)));
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("pictures/watch-{name}.svg"));
        if std::env::var_os(WRITE).is_some() {
            std::fs::write(&path, &picture).unwrap();
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(picture == kept, "{name} is not what the program shows: run this with {WRITE}=1\n{picture}");
    }
}

/// Each holder with how long it has held the key and what is left of its lease, in milliseconds, and how many wait for the key.
fn rows() -> Vec<Row> {
    let reader = |label, reason, held, left| ("report/42", label, reason, held, left, 0);
    let all = [
        ("backup/db1", "root@db1 pid 4711", "base backup", 4_320_000, 23_000, 0),
        ("cron/mail", "mail@web2 pid 812", "", 8_400, 21_000, 1),
        ("db/migrate", "ada@laptop pid 93", "schema change", 189_000, 17_000, 2),
        reader("worker@app1 pid 20", "nightly report", 42_000, 26_000),
        reader("worker@app2 pid 17", "nightly report", 38_000, 24_000),
        reader("worker@app3 pid 31", "", 12_000, 28_000),
    ];
    let mut rows: Vec<Holders> = Vec::new();
    for ((key, label, reason, held, left, waiters), rank) in all.into_iter().zip(0..) {
        let mut holder = Holder::new(if key == "report/42" { Mode::Shared } else { Mode::Exclusive });
        holder.label = Some(label.to_owned());
        holder.reason = Some(reason.to_owned()).filter(|reason| !reason.is_empty());
        holder.token = Some(FencingToken::from(1_812_345_678_901_248_u64 + rank * 421_568));
        holder.granted_at = now().wall.checked_sub(Duration::from_millis(held));
        holder.remaining = Some(Duration::from_millis(left) + AGE);
        if let Some(last) = rows.last_mut().filter(|last| last.key.as_str() == key) {
            last.holders.push(holder);
        } else {
            let mut holders = Holders::new(&LockKey::new(key).unwrap(), vec![holder]);
            holders.waiters = Some(waiters);
            rows.push(holders);
        }
    }
    let seen = now().since.saturating_sub(AGE);
    rows.into_iter().filter_map(|holders| Row::new(holders, seen)).collect()
}

fn svg(screen: &Buffer) -> String {
    let (columns, rows) = (usize::from(screen.area.width), usize::from(screen.area.height));
    let (width, height) = ((columns + 2) * CELL.0, (rows + 1) * CELL.1);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" font-size=\"13\" \
         font-family=\"ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace\" xml:space=\"preserve\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"{PAPER}\"/>\n"
    );
    for (row, line) in screen.content().chunks(columns).enumerate() {
        draw(&mut svg, line, row);
    }
    svg.push_str("</svg>\n");
    svg
}

/// The colour of a cell, and whether it is bold, dim or inverse.
fn style(cell: &Cell) -> (&'static str, [bool; 3]) {
    let colour = match cell.fg {
        Color::Red => "#ff6b6b",
        Color::Yellow => "#ffd166",
        Color::Cyan => "#5ccfe6",
        _ => INK,
    };
    (colour, [Modifier::BOLD, Modifier::DIM, Modifier::REVERSED].map(|modifier| cell.modifier.contains(modifier)))
}

/// One line of text, in runs of one style each, and of these each word at its place: no font has to be as wide as a cell.
fn draw(svg: &mut String, line: &[Cell], row: usize) {
    let mut at = 0;
    for run in line.chunk_by(|one, other| style(one) == style(other)) {
        let (colour, [bold, dim, inverse]) = style(&run[0]);
        let y = row * CELL.1 + CELL.1 / 2;
        if inverse {
            let (x, width, height) = ((at + 1) * CELL.0, run.len() * CELL.0, CELL.1);
            let _ =
                writeln!(svg, "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{colour}\"/>");
        }
        let fill = if inverse { PAPER } else { colour };
        let weight = if bold { " font-weight=\"bold\"" } else { "" };
        let opacity = if dim { " opacity=\"0.55\"" } else { "" };
        for word in run.chunk_by(|one, other| kind(one) == kind(other)) {
            let (x, length) = ((at + 1) * CELL.0, word.len() * CELL.0);
            at += word.len();
            let shown: String = word.iter().map(Cell::symbol).collect();
            let shown = shown.replace('&', "&amp;").replace('<', "&lt;");
            let _ = match kind(&word[0]) {
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

/// Of what belongs together: nothing, a line, other parts of a frame, a word.
fn kind(cell: &Cell) -> char {
    match cell.symbol().chars().next().unwrap_or(' ') {
        symbol @ (' ' | '─') => symbol,
        '\u{2500}'..='\u{257f}' => '┼',
        _ => 'a',
    }
}
