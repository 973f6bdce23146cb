// SPDX-License-Identifier: PostgreSQL
//! The terminal: taken over, drawn on, given back.
//!
//! A refresh is one write: the cells that differ from what is there, between the marks of a
//! synchronized update, so that a terminal which knows them shows all of it at once. A slow line
//! carries the difference only.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Stdout, Write};
use std::os::fd::AsFd;
use std::rc::Rc;
use std::sync::Once;

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{DisableMouseCapture, EnableMouseCapture};
use ratatui::crossterm::terminal::{
    disable_raw_mode, enable_raw_mode, BeginSynchronizedUpdate, EndSynchronizedUpdate,
    EnterAlternateScreen, LeaveAlternateScreen,
};
use ratatui::crossterm::{cursor, execute, queue};
use ratatui::Frame;

/// What is drawn until it is sent.
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

/// The terminal of standard output, as long as it is ours.
pub struct Terminal {
    drawn: Batch,
    out: File,
    inner: ratatui::Terminal<CrosstermBackend<Batch>>,
    mouse: bool,
}

impl Terminal {
    /// Take it over. It is given back when this is dropped, and before the message of a panic.
    pub fn take(mouse: bool) -> io::Result<Terminal> {
        give_back_on_panic();
        let drawn = Batch::default();
        let out = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        enable_raw_mode()?;
        let begun = execute!(io::stdout(), EnterAlternateScreen, cursor::Hide);
        let inner =
            begun.and_then(|()| ratatui::Terminal::new(CrosstermBackend::new(drawn.clone())));
        let inner = inner.inspect_err(|_| give_back(&mut io::stdout()))?;
        let mut terminal = Terminal { drawn, out, inner, mouse: false };
        terminal.listen(mouse)?;
        Ok(terminal)
    }

    /// Listen to the mouse, or leave it to the terminal, which then marks text with it.
    pub fn listen(&mut self, mouse: bool) -> io::Result<()> {
        if mouse && !self.mouse {
            execute!(self.out, EnableMouseCapture)?;
        } else if self.mouse && !mouse {
            execute!(self.out, DisableMouseCapture)?;
        }
        self.mouse = mouse;
        Ok(())
    }

    /// Draw, and send what has changed.
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
        // Where the terminal has gone there is nothing to give back.
        let _ = self.listen(false);
        give_back(&mut io::stdout());
    }
}

fn give_back(out: &mut Stdout) {
    // Each of them, whatever became of the others.
    let _ = execute!(out, EndSynchronizedUpdate, LeaveAlternateScreen, cursor::Show);
    let _ = disable_raw_mode();
}

/// Else a panic's message would be drawn over, and the shell behind it deaf.
fn give_back_on_panic() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let others = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let _ = execute!(io::stdout(), DisableMouseCapture);
            give_back(&mut io::stdout());
            others(panic);
        }));
    });
}
