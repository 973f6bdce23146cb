// SPDX-License-Identifier: PostgreSQL
//! A shell on a terminal, into which commands are typed one after the other.

use super::pty::Pty;

/// What the shell prints when it waits for a command: the status of the last one between two bytes that no command prints.
const PROMPT: &str = "PS1=\u{1}$?\u{2}";
const WIDTH: u16 = 220;
const HEIGHT: u16 = 50;

/// The shell.
pub struct Terminal {
    pty: Pty,
    /// Its process group.
    shell: i32,
    /// How much of the output has been read.
    seen: usize,
}

/// What a command has printed, and its exit status.
#[derive(Debug)]
pub struct Printed {
    pub status: i32,
    /// On the terminal, without control sequences.
    pub text: String,
}

impl Terminal {
    /// A shell with this environment alone, in the directory of PWD there.
    pub fn start(environment: &[(String, String)]) -> Terminal {
        let mut words = vec!["env".to_string(), "-i".into(), PROMPT.into(), "PS2=".into()];
        let folder = environment.iter().find(|(name, _)| name == "PWD").map(|(_, value)| value);
        words.extend(folder.map(|folder| format!("--chdir={folder}")));
        // Options come before assignments.
        words[1..].sort_by_key(|word| !word.starts_with('-'));
        words.extend(environment.iter().map(|(name, value)| format!("{name}={value}")));
        words.extend(["bash", "--norc", "--noprofile", "--noediting", "-i"].map(String::from));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut pty = Pty::run(WIDTH, HEIGHT, &words);
        pty.until("the shell's prompt", |all| prompt_in(all).is_some());
        let shell = pty.foreground().unwrap();
        let mut terminal = Terminal { pty, shell, seen: 0 };
        terminal.run("stty -echo");
        terminal
    }

    /// Types a command, and waits until it has ended.
    pub fn run(&mut self, command: &str) -> Printed {
        self.skip();
        self.pty.press(&format!("{command}\n"));
        self.end(command)
    }

    /// Types a command that goes on, waits until it has printed this ("": until it runs), and ends it by these keys.
    pub fn run_until(&mut self, command: &str, prints: &str, keys: &str) -> Printed {
        self.skip();
        self.pty.press(&format!("{command}\n"));
        let seen = self.seen;
        let waits = format!("{prints:?} of {command}");
        if prints.is_empty() {
            let shell = self.shell;
            // Until it has become another program, it may lose a key.
            let runs = |group: &i32| {
                let name = std::fs::read_to_string(format!("/proc/{group}/comm"));
                *group != shell && name.is_ok_and(|name| name.trim() != "bash")
            };
            super::eventually(&waits, || {
                self.pty.foreground().as_ref().is_some_and(runs) || self.has_prompt()
            });
        } else {
            self.pty.until(&waits, |all| {
                text(&all[seen..]).contains(prints) || prompt_in(&all[seen..]).is_some()
            });
        }
        if !self.has_prompt() {
            self.pty.press(keys);
        }
        self.end(command)
    }

    fn has_prompt(&mut self) -> bool {
        let seen = self.seen;
        let all = self.pty.until("nothing", |_| true);
        prompt_in(&all[seen.min(all.len())..]).is_some()
    }

    /// What has been printed until now belongs to earlier commands.
    fn skip(&mut self) {
        self.seen = self.pty.until("nothing", |_| true).len();
    }

    fn end(&mut self, command: &str) -> Printed {
        let seen = self.seen;
        let all = self.pty.until(command, |all| prompt_in(&all[seen..]).is_some());
        let (at, status) = prompt_in(&all[seen..]).unwrap();
        Printed { status, text: text(&all[seen..seen + at]) }
    }
}

/// Where a prompt begins in these bytes, and the status in it.
fn prompt_in(bytes: &[u8]) -> Option<(usize, i32)> {
    let end = bytes.iter().rposition(|byte| *byte == 2)?;
    let begin = bytes[..end].iter().rposition(|byte| *byte == 1)?;
    let status = std::str::from_utf8(&bytes[begin + 1..end]).ok()?.parse().ok()?;
    Some((begin, status))
}

/// The characters; where the cursor moves is a space, or a line's end if it moves to another line.
fn text(bytes: &[u8]) -> String {
    let all = String::from_utf8_lossy(bytes);
    let mut text = String::new();
    let mut row = String::new();
    let mut rest = all.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\r' => {}
            '\u{1b}' if rest.peek() == Some(&'[') => {
                rest.next();
                let mut parameters = String::new();
                let last = loop {
                    match rest.next() {
                        Some(c) if ('@'..='~').contains(&c) => break c,
                        Some(c) => parameters.push(c),
                        None => break ' ',
                    }
                };
                if last == 'H' {
                    let to = parameters.split(';').next().unwrap_or("").to_string();
                    text.push(if to == row { ' ' } else { '\n' });
                    row = to;
                }
            }
            '\u{1b}' => drop(rest.next()),
            _ => text.push(c),
        }
    }
    text
}
