// SPDX-License-Identifier: PostgreSQL
//! The classes of activities from `format/classes.toml`, and everything generated from them.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde::Deserialize;

/// The classes, in the order in which they are shown.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Classes {
    classes: Vec<Class>,
    waits: Vec<(String, String)>,
}

/// Key, heading, hue, chroma, lightness in the light theme, in the dark theme, colour of the terminal.
#[derive(Debug, Deserialize)]
struct Class(String, String, u16, f64, [f64; 2], [f64; 2], String);

const GENERATED: &str = "Generated from format/classes.toml by `make generate`; do not edit.";

impl Classes {
    /// Parses the classes from `text`.
    pub fn read(text: &str) -> Result<Classes, String> {
        let read: Classes = toml::from_str(text).map_err(|error| error.to_string())?;
        let (mut keys, mut colors) = (BTreeSet::new(), BTreeSet::new());
        for Class(key, _, hue, _, light, dark, color) in &read.classes {
            if !keys.insert(key.clone()) {
                return Err(format!("{key} is defined twice"));
            }
            if !colors.insert(color.clone()) {
                return Err(format!("{key} has the terminal colour {color} of another class"));
            }
            if *hue >= 360 || light.iter().chain(dark).any(|part| !(0.0..=1.0).contains(part)) {
                return Err(format!("{key}: a hue is below 360, a lightness between 0 and 1"));
            }
        }
        for (at, (prefix, _)) in read.waits.iter().enumerate() {
            let mut earlier = read.waits[..at].iter().map(|(earlier, _)| earlier);
            if let Some(earlier) = earlier.find(|earlier| prefix.starts_with(*earlier)) {
                return Err(format!("{prefix} is never reached, because {earlier} comes first"));
            }
        }
        Ok(read)
    }

    /// Generates `wait_prefixes.h` of the extension.
    pub fn wait_header(&self) -> String {
        let mut out = format!(
            "/* SPDX-License-Identifier: PostgreSQL */\n/*\n * wait_prefixes.h\n\
             \x20*\t  The class of a wait by the beginning of its name.\n *\n * {GENERATED}\n */\n\
             #ifndef PG_TALLY_WAIT_PREFIXES_H\n#define PG_TALLY_WAIT_PREFIXES_H\n\n#include \"tally.h\"\n\n\
             static const struct\n{{\n\tconst char *prefix;\n\ttally_account_class class;\n}}\t\t\twait_prefixes[] = {{\n"
        );
        for (prefix, class) in &self.waits {
            let _ = writeln!(out, "\t{{\"{prefix}\", TALLY_CLASS_{}}},", class.to_uppercase());
        }
        out.push_str("};\n\n#endif\t\t\t\t\t\t\t/* PG_TALLY_WAIT_PREFIXES_H */\n");
        out
    }

    /// Generates `wait_prefixes.rs` of the reader.
    pub fn wait_reader(&self) -> String {
        let mut out = format!(
            "// SPDX-License-Identifier: PostgreSQL\n\
             //! The class of a wait by the beginning of its name.\n//!\n//! {GENERATED}\n\n\
             use crate::layout::account_class as class;\n\n\
             /// Beginnings of names, and their classes as in a directory entry; the first that fits counts.\n\
             pub(crate) const WAIT_PREFIXES: [(&str, u8); {}] = [\n",
            self.waits.len()
        );
        for (prefix, class) in &self.waits {
            let _ = writeln!(out, "    (\"{prefix}\", class::{}),", class.to_uppercase());
        }
        out.push_str("];\n");
        out
    }

    /// Generates `classes.ts` of the pages.
    pub fn script(&self) -> String {
        let keys: Vec<String> =
            self.classes.iter().map(|class| format!("\"{}\"", class.0)).collect();
        let mut out = format!(
            "// SPDX-License-Identifier: PostgreSQL\n/** Classes of activities: headings and hues. {GENERATED} */\n\n\
             export const CLASSES = [{}] as const;\n\
             export type ActivityClass = (typeof CLASSES)[number];\n\n\
             /** As in headings of tables. */\n\
             export const CLASS_NAMES: Readonly<Record<ActivityClass, string>> = {{\n",
            keys.join(", ")
        );
        for Class(key, heading, ..) in &self.classes {
            let _ = writeln!(out, "    {key}: \"{heading}\",");
        }
        out.push_str(
            "};\n\nexport interface Hue {\n    readonly chroma: number;\n    readonly hue: number;\n    \
             /** Lightness of the class's own colour, and of the last of its shades. */\n    \
             readonly light: readonly [number, number];\n    readonly dark: readonly [number, number];\n}\n\n\
             export const HUES: Readonly<Record<ActivityClass, Hue>> = {\n",
        );
        for Class(key, _, hue, chroma, light, dark, _) in &self.classes {
            let _ = writeln!(
                out,
                "    {key}: {{ chroma: {chroma}, hue: {hue}, light: {light:?}, dark: {dark:?} }},"
            );
        }
        out.push_str("};\n");
        out
    }

    /// Generates `activities.css` of the pages.
    pub fn sheet(&self) -> String {
        let mut out = format!(
            "/* SPDX-License-Identifier: PostgreSQL */\n\
             /* Pieces of drawings in the colours of activities; the second shade is for the kernel's code. Import this sheet after\n   \
             those that give such a piece another background.\n   {GENERATED} */\n\
             :is([class^=\"of-\"], [class*=\" of-\"]) {{\n    background: var(--fill);\n    color: var(--on-fill);\n}}\n\n\
             .of-plain {{\n    --fill: var(--sunken);\n    --on-fill: var(--ink);\n}}\n"
        );
        for Class(key, ..) in &self.classes {
            for name in [key.clone(), format!("{key}-2")] {
                let _ = write!(
                    out,
                    "\n.of-{name} {{\n    --fill: var(--{name});\n    --on-fill: var(--on-{name});\n}}\n"
                );
            }
        }
        out
    }

    /// Generates `class_color.rs` of the terminal.
    pub fn terminal(&self) -> String {
        let mut out = format!(
            "// SPDX-License-Identifier: PostgreSQL\n\
             //! Colours of the classes of activities.\n//!\n//! {GENERATED}\n\n\
             use ratatui::style::Color;\nuse segment::WaitClass;\n\n\
             /// The colour of a class: the nearest to that of the pages.\n\
             pub fn class_color(class: WaitClass) -> Color {{\n    match class.shown_as() {{\n"
        );
        for (at, Class(key, _, _, _, _, _, color)) in self.classes.iter().enumerate() {
            let (first, rest) = key.split_at(1);
            let variant = match at + 1 < self.classes.len() {
                true => format!("WaitClass::{}{rest}", first.to_uppercase()),
                false => "_".into(),
            };
            let _ = writeln!(out, "        {variant} => Color::{color},");
        }
        out.push_str("    }\n}\n");
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "classes = [\n\
        [\"cpu\", \"CPU\", 164, 0.13, [0.64, 0.85], [0.68, 0.46], \"Green\"],\n\
        [\"other\", \"Other\", 250, 0.01, [0.5, 0.7], [0.5, 0.3], \"DarkGray\"]]\n\
        waits = [[\"Call:a\", \"other\"], [\"Call:\", \"buffer_pin\"]]";

    #[test]
    fn pages_and_terminal_have_the_classes_in_their_order() {
        let classes = Classes::read(TEXT).unwrap();
        let script = classes.script();
        assert!(script.contains("CLASSES = [\"cpu\", \"other\"] as const"), "{script}");
        assert!(
            script.contains(
                "cpu: { chroma: 0.13, hue: 164, light: [0.64, 0.85], dark: [0.68, 0.46] }"
            ),
            "{script}"
        );
        assert!(classes.sheet().contains(".of-other-2 {\n    --fill: var(--other-2);"));
        assert!(classes
            .terminal()
            .contains("        WaitClass::Cpu => Color::Green,\n        _ => Color::DarkGray,\n"));
    }

    #[test]
    fn writer_and_reader_have_the_same_prefixes_in_the_same_order() {
        let classes = Classes::read(TEXT).unwrap();
        let header =
            "\t{\"Call:a\", TALLY_CLASS_OTHER},\n\t{\"Call:\", TALLY_CLASS_BUFFER_PIN},\n};";
        assert!(classes.wait_header().contains(header), "{}", classes.wait_header());
        let reader =
            "; 2] = [\n    (\"Call:a\", class::OTHER),\n    (\"Call:\", class::BUFFER_PIN),\n];";
        assert!(classes.wait_reader().contains(reader), "{}", classes.wait_reader());
        let hidden = TEXT.replace("\"Call:a\"", "\"C\"");
        assert_eq!(
            Classes::read(&hidden).unwrap_err(),
            "Call: is never reached, because C comes first"
        );
    }

    #[test]
    fn a_colour_is_that_of_one_class() {
        let refused = |from: &str, to: &str| Classes::read(&TEXT.replace(from, to)).unwrap_err();
        assert_eq!(refused("\"other\"", "\"cpu\""), "cpu is defined twice");
        assert_eq!(
            refused("DarkGray", "Green"),
            "other has the terminal colour Green of another class"
        );
        assert_eq!(refused("250", "360"), "other: a hue is below 360, a lightness between 0 and 1");
    }
}
