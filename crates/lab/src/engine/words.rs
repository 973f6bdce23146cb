// SPDX-License-Identifier: PostgreSQL
//! Replaces words in braces in commands and scripts.

/// Names and their values.
#[derive(Debug, Clone, Default)]
pub struct Words(Vec<(&'static str, String)>);

impl Words {
    /// Sets the value of a name.
    pub fn set(&mut self, name: &'static str, value: impl ToString) {
        self.0.retain(|(known, _)| *known != name);
        self.0.push((name, value.to_string()));
    }

    /// A command with its words replaced.
    pub fn fill_all(&self, command: &[String]) -> Vec<String> {
        command.iter().map(|word| self.fill(word)).collect()
    }

    /// The text with each known {name} replaced; other braces stay.
    pub fn fill(&self, text: &str) -> String {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(open) = rest.find('{') {
            filled.push_str(&rest[..open]);
            rest = &rest[open..];
            let known = self.0.iter().find_map(|(name, value)| {
                let after = rest[1..].strip_prefix(name)?.strip_prefix('}')?;
                Some((value, after))
            });
            match known {
                Some((value, after)) => {
                    filled.push_str(value);
                    rest = after;
                }
                None => {
                    filled.push('{');
                    rest = &rest[1..];
                }
            }
        }
        filled + rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_words_are_replaced_once() {
        let mut words = Words::default();
        words.set("pid", 7);
        words.set("data", "{pid}");
        assert_eq!(words.fill("-p {pid} {data} { pid } {x} ${"), "-p 7 {pid} { pid } {x} ${");
    }
}
