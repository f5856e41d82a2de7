use std::io;
use std::thread;

use crossterm::cursor::Show;
use crossterm::execute;
use crossterm::terminal::{EnterAlternateScreen, enable_raw_mode};
use ratatui::layout::{Position, Rect};
use ratatui::{DefaultTerminal, Frame};

/// The terminal, while the table is on it. Dropping this value gives it back as it was, and so does a panic, before its message.
pub(super) struct Screen(DefaultTerminal);

impl Screen {
    pub(super) fn open() -> io::Result<Self> {
        // It fails with some of the settings made.
        ratatui::try_init().map(Self).inspect_err(|_| restore())
    }

    pub(super) fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.0.draw(draw).map(|_| ())
    }

    /// Draws every cell again next time, as something else wrote to the terminal.
    pub(super) fn forget(&mut self) -> io::Result<()> {
        // Not by `clear`, which asks the terminal for the place of the cursor: some do not answer.
        let size = self.0.size()?;
        self.0.resize(Rect::from((Position::ORIGIN, size)))
    }

    /// Gives the terminal back while `stop` runs.
    pub(super) fn suspend(&mut self, stop: impl FnOnce()) -> io::Result<()> {
        restore();
        stop();
        enable_raw_mode()?;
        execute!(io::stdout(), EnterAlternateScreen)?;
        self.forget()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if thread::panicking() {
            // The terminal was given back before the message. To leave its other screen once more would put the cursor back to where it
            // was, and what is printed next over the message.
            show_cursor();
        } else {
            restore();
        }
    }
}

/// An error is ignored: the terminal is gone then.
fn restore() {
    let _ = ratatui::try_restore();
    show_cursor();
}

fn show_cursor() {
    let _ = execute!(io::stdout(), Show);
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::Command;

    use leasehold_testkit::terminal::OnTerminal;

    use super::*;

    #[test]
    fn a_panic_gives_the_terminal_back_before_its_message() {
        /// In the process on the terminal, in which this test panics.
        const PANICS: &str = "LEASEHOLD_TEST_PANICS_ON_A_TERMINAL";
        if std::env::var_os(PANICS).is_some() {
            let mut screen = Screen::open().unwrap();
            screen.draw(|frame| frame.render_widget("all is well", frame.area())).unwrap();
            // Until the other process has seen it.
            io::stdin().read_line(&mut String::new()).unwrap();
            panic!("on purpose");
        }
        let mut command = Command::new(std::env::current_exe().unwrap());
        let name = "watch::screen::tests::a_panic_gives_the_terminal_back_before_its_message";
        command.args([name, "--exact", "--nocapture"]).env(PANICS, "1").env("RUST_BACKTRACE", "0");
        let mut terminal = OnTerminal::start(&command, 80, 24).unwrap();
        let before = terminal.settings();
        terminal.until("the screen", |screen| {
            (screen.alternate_screen() && screen.hide_cursor() && screen.contents().contains("all is well"))
                .then_some(())
        });
        assert_ne!(terminal.settings(), before);
        // Raw, as the terminal is, this is the end of a line and Enter is not.
        terminal.type_in("\n");
        assert!(!terminal.end().success());
        terminal.shows("on purpose");
        let screen = terminal.screen();
        assert!(!screen.alternate_screen() && !screen.hide_cursor(), "{}", terminal.text());
        assert_eq!(terminal.settings(), before);
    }
}
