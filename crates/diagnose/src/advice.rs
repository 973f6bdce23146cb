// SPDX-License-Identifier: PostgreSQL
//! What to do about a finding: sentences, and the commands in them.

use std::fmt;
use std::ops::Deref;

use serde::Serialize;

/// What to look at or to change: a text, and the commands in it, which a page offers to be copied. They are kept apart because a
/// text also has names that users choose.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Advice {
    /// In words, the commands included.
    #[serde(rename = "advice")]
    text: String,
    /// The commands in the text, in their order, each complete; some are alternatives. SQL begins in capitals, a shell's command
    /// does not.
    commands: Vec<String>,
}

impl Advice {
    /// Adds words.
    #[must_use]
    pub(crate) fn say(mut self, words: &str) -> Advice {
        self.text.push_str(words);
        self
    }

    /// Adds a command.
    #[must_use]
    pub(crate) fn run(mut self, command: impl Into<String>) -> Advice {
        let command = command.into();
        self.text.push_str(&command);
        if !self.commands.contains(&command) {
            self.commands.push(command);
        }
        self
    }

    /// Adds a change of a setting of the server: two commands.
    #[must_use]
    pub(crate) fn set(self, setting: &str, value: &str) -> Advice {
        self.run(format!("ALTER SYSTEM SET {setting} = {value}")).say("; ").run(RELOAD)
    }

    /// Adds another advice.
    #[must_use]
    pub(crate) fn and(mut self, other: Advice) -> Advice {
        self.text.push_str(&other.text);
        for command in other.commands {
            if !self.commands.contains(&command) {
                self.commands.push(command);
            }
        }
        self
    }

    /// The commands as one enters them: SQL with a semicolon at its end.
    pub fn entered(&self) -> Vec<String> {
        let is_sql = |command: &str| command.starts_with(|c: char| c.is_ascii_uppercase());
        let end = |command: &String| if is_sql(command) { ";" } else { "" };
        self.commands.iter().map(|command| format!("{command}{}", end(command))).collect()
    }

    /// The commands, without a semicolon at their ends.
    pub fn commands(&self) -> &[String] {
        &self.commands
    }
}

/// The command after which a changed setting counts.
pub(crate) const RELOAD: &str = "SELECT pg_reload_conf()";

impl Deref for Advice {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PartialEq<&str> for Advice {
    fn eq(&self, text: &&str) -> bool {
        self.text == *text
    }
}

impl From<&str> for Advice {
    fn from(text: &str) -> Advice {
        Advice::default().say(text)
    }
}

impl From<String> for Advice {
    fn from(text: String) -> Advice {
        Advice { text, commands: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_listed_once_and_a_name_is_none() {
        let advice = Advice::from("For table \"a. SELECT 1\": ")
            .set("work_mem", "'1GB'")
            .say(", then ")
            .and(Advice::default().set("jit", "off"));
        assert_eq!(
            &*advice,
            "For table \"a. SELECT 1\": ALTER SYSTEM SET work_mem = '1GB'; SELECT pg_reload_conf(), then ALTER SYSTEM SET jit = off; \
             SELECT pg_reload_conf()"
        );
        assert_eq!(
            advice.commands(),
            ["ALTER SYSTEM SET work_mem = '1GB'", RELOAD, "ALTER SYSTEM SET jit = off"]
        );
    }
}
