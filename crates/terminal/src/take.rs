// SPDX-License-Identifier: PostgreSQL
//! Sets up the terminal, draws on it, and restores it.
//!
//! A refresh is a single write of only the changed cells, within a synchronized update, so that a terminal that
//! supports it shows all changes at once, and a slow line carries nothing but changes.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Stdout, Write};
use std::os::fd::AsFd;
use std::rc::Rc;
use std::sync::Once;

use crossterm::event::{DisableMouseCapture, EnableMouseCapture};
use crossterm::terminal::{
    disable_raw_mode, enable_raw_mode, BeginSynchronizedUpdate, EndSynchronizedUpdate,
    EnterAlternateScreen, LeaveAlternateScreen,
};
use crossterm::{cursor, execute, queue};
use ratatui::backend::CrosstermBackend;
use ratatui::Frame;

/// Output that has not been sent yet.
#[derive(Debug, Clone, Default)]
struct Batch(Rc<RefCell<Vec<u8>>>);

impl Write for Batch {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The terminal of standard output, in full-screen mode.
pub struct Terminal {
    drawn: Batch,
    out: File,
    inner: ratatui::Terminal<CrosstermBackend<Batch>>,
    mouse: bool,
}

impl Terminal {
    /// Sets it up. It is restored on drop, and before the message of a panic.
    pub fn take(mouse: bool) -> io::Result<Terminal> {
        give_back_on_panic();
        let drawn = Batch::default();
        let out = File::from(view::escape::process_stdout().as_fd().try_clone_to_owned()?);
        enable_raw_mode()?;
        let begun = execute!(view::escape::process_stdout(), EnterAlternateScreen, cursor::Hide);
        let inner =
            begun.and_then(|()| ratatui::Terminal::new(CrosstermBackend::new(drawn.clone())));
        let inner = inner.inspect_err(|_| give_back(&mut view::escape::process_stdout()))?;
        let mut terminal = Terminal { drawn, out, inner, mouse: false };
        terminal.listen(mouse)?;
        Ok(terminal)
    }

    /// Turns mouse events on or off. When they are off, the terminal itself uses the mouse to select text.
    pub fn listen(&mut self, mouse: bool) -> io::Result<()> {
        if mouse && !self.mouse {
            execute!(self.out, EnableMouseCapture)?;
        } else if self.mouse && !mouse {
            execute!(self.out, DisableMouseCapture)?;
        }
        self.mouse = mouse;
        Ok(())
    }

    /// Draws, and sends the changes.
    pub fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        queue!(self.drawn, BeginSynchronizedUpdate)?;
        self.inner.draw(draw)?;
        queue!(self.drawn, EndSynchronizedUpdate)?;
        let bytes = self.drawn.0.take();
        self.out.write_all(&bytes)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // If the terminal was closed, there is nothing to restore.
        let _ = self.listen(false);
        give_back(&mut view::escape::process_stdout());
    }
}

fn give_back(out: &mut Stdout) {
    // Each step is tried even if another failed.
    let _ = execute!(out, EndSynchronizedUpdate, LeaveAlternateScreen, cursor::Show);
    let _ = disable_raw_mode();
}

/// Otherwise the screen would overwrite the message of a panic, and the shell would be left without echo.
fn give_back_on_panic() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let others = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            // The panic of a library that reads a damaged file is expected.
            if recording::panic_is_expected() {
                return;
            }
            let _ = execute!(view::escape::process_stdout(), DisableMouseCapture);
            give_back(&mut view::escape::process_stdout());
            others(panic);
        }));
    });
}
