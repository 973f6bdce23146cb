// SPDX-License-Identifier: PostgreSQL
//! Measured figures: `docs/figures.toml` has each once. The tables of the page of results are made from it, and every page
//! that quotes a figure gets its present value. A quotation is a link: `[+1.11 % ± 0.08](results.md#waits-select)`, of a goal
//! `[+0.6 %](results.md#waits-select-goal)`, of the day of a run, by its first figure,
//! `[2026-11-24](results.md#waits-select-date)`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use serde::Deserialize;

use crate::words::grouped;

/// The page on which each figure has its row.
const PAGE: &str = "results.md";

/// All figures.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figures {
    /// Files other than Markdown that quote figures.
    pub quoted_in: Vec<String>,
    /// What was measured on, by short names.
    machines: BTreeMap<String, String>,
    #[serde(rename = "group")]
    groups: Vec<Group>,
    instructions: Vec<Instructions>,
}

/// Figures of one table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    name: String,
    what: String,
    #[serde(rename = "run")]
    runs: Vec<Run>,
}

/// What one command measured on one day.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    machine: String,
    date: String,
    /// Version of pgtally, if it was not the present one.
    version: Option<String>,
    command: String,
    figures: Vec<Figure>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Figure {
    name: String,
    what: String,
    #[serde(default)]
    found: String,
    half_width: Option<String>,
    range: Option<String>,
    control: Option<String>,
    goal: Option<String>,
    met: Option<String>,
    brief: Option<String>,
    baseline: Option<String>,
    per: Option<u32>,
}

/// A table of instructions, of which `bench/instructions.baseline` has those of the extension.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Instructions {
    name: String,
    /// Name in the baseline, title.
    workloads: Vec<(String, String)>,
    rows: Vec<InstructionRow>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct InstructionRow {
    title: String,
    arm: Option<String>,
    #[serde(default)]
    cells: Vec<String>,
}

impl Run {
    /// The name of its first figure.
    fn first(&self) -> &str {
        self.figures.first().map_or("", |figure| figure.name.as_str())
    }

    /// The day, and the version of pgtally if it is not the present one.
    fn day(&self) -> String {
        match &self.version {
            Some(version) => format!("{}, version {version}", self.date),
            None => self.date.clone(),
        }
    }
}

impl Figure {
    /// With its half-width or range.
    fn text(&self) -> String {
        match (&self.half_width, &self.range) {
            (Some(half), _) => format!("{} ± {half}", self.found),
            (None, Some(range)) => format!("{} ({range})", self.found),
            (None, None) => self.found.clone(),
        }
    }

    fn is_missed(&self) -> bool {
        self.met.as_deref().is_some_and(|met| met == "no" || met.starts_with("no;"))
    }
}

/// Instructions of the baseline, by "WORKLOAD ARM library" and "WORKLOAD ARM added".
fn read_baseline(text: &str) -> Result<BTreeMap<&str, f64>, String> {
    let figures = text.lines().filter_map(|line| line.strip_prefix("figure "));
    let entry = |line| {
        let (name, value) = str::rsplit_once(line, ' ').ok_or("a line without a value")?;
        Ok((name, value.parse().map_err(|error| format!("{line}: {error}"))?))
    };
    figures.map(entry).collect()
}

impl Figures {
    /// From the text of the file of figures and that of the baseline of instructions.
    pub fn read(text: &str, baseline: &str) -> Result<Self, String> {
        let mut figures: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        let baseline = read_baseline(baseline)?;
        for figure in
            figures.groups.iter_mut().flat_map(|g| &mut g.runs).flat_map(|r| &mut r.figures)
        {
            if let Some(name) = &figure.baseline {
                let value = *baseline
                    .get(name.as_str())
                    .ok_or_else(|| format!("no {name} in the baseline"))?;
                figure.found = match figure.per {
                    Some(whole) => format!("{:.1} %", 100.0 * value / f64::from(whole)),
                    None => grouped(value.round() as u64),
                };
            }
        }
        for row in figures.instructions.iter_mut() {
            for line in row.rows.iter_mut() {
                let Some(arm) = &line.arm else { continue };
                for (workload, _) in &row.workloads {
                    for part in ["added", "library"] {
                        let name = format!("{workload} {arm} {part}");
                        let value = *baseline
                            .get(name.as_str())
                            .ok_or_else(|| format!("no {name} in the baseline"))?;
                        line.cells.push(grouped(value.round() as u64));
                    }
                }
            }
        }
        figures.check()?;
        Ok(figures)
    }

    fn all(&self) -> impl Iterator<Item = &Figure> {
        self.groups.iter().flat_map(|group| &group.runs).flat_map(|run| &run.figures)
    }

    fn find(&self, name: &str) -> Option<&Figure> {
        self.all().find(|figure| figure.name == name)
    }

    /// The day of the run that begins with this figure.
    fn find_day(&self, first: &str) -> Option<String> {
        let mut runs = self.groups.iter().flat_map(|group| &group.runs);
        runs.find(|run| run.first() == first).map(Run::day)
    }

    fn check(&self) -> Result<(), String> {
        let mut names = BTreeSet::new();
        for figure in self.all() {
            let name = &figure.name;
            if !names.insert(name) || name.ends_with("-goal") || name.ends_with("-date") {
                return Err(format!(
                    "{name}: another figure has this name, or it is that of a goal or date"
                ));
            }
            if figure.found.is_empty() || figure.goal.is_some() != figure.met.is_some() {
                return Err(format!(
                    "{name}: `found` is required, and with a `goal`, `met` is, too"
                ));
            }
        }
        for run in self.groups.iter().flat_map(|group| &group.runs) {
            if !self.machines.contains_key(&run.machine) {
                return Err(format!("there is no machine {}", run.machine));
            }
            if run.figures.is_empty() {
                return Err(format!("{}: a run without figures", run.command));
            }
        }
        Ok(())
    }

    /// Tables of documentation by their names.
    pub fn tables(&self) -> BTreeMap<String, String> {
        let mut tables = BTreeMap::new();
        let mut first = 1;
        for group in &self.groups {
            tables.insert(format!("figures of {}", group.name), group.table(first));
            first += group.runs.len();
        }
        tables.extend(self.instructions.iter().map(|table| (table.name.clone(), table.table())));
        let machines: String =
            self.machines.iter().map(|(name, what)| format!("- **{name}**: {what}\n")).collect();
        tables.insert("machines".into(), machines);
        tables
    }

    /// The page with correct quotations. `strict`: a figure with a half-width must be a quotation, and a page
    /// that quotes a figure that misses its goal must quote the goal, too.
    pub fn requote(&self, page: &str, strict: bool) -> Result<String, String> {
        let mut out = String::new();
        let mut rest = page;
        let (mut missed, mut goals) = (BTreeMap::new(), BTreeSet::new());
        while let Some((before, after)) = rest.split_once("](") {
            let Some((target, tail)) = after.split_once(')') else { break };
            let name =
                target.split_once('#').filter(|(file, _)| file.ends_with(PAGE)).map(|(_, id)| id);
            let goal = name.and_then(|id| Some((self.find(id.strip_suffix("-goal")?)?, true)));
            let quoted = goal.or_else(|| Some((self.find(name?)?, false)));
            let day = name.and_then(|id| self.find_day(id.strip_suffix("-date")?));
            let (text, from) = match (quoted, before.rfind('[')) {
                (None, Some(open)) if day.is_some() => {
                    let present = &before[open + 1..];
                    let is_same =
                        present.split_whitespace().eq(day.iter().flat_map(|day| day.split(' ')));
                    let text = if is_same { present.to_string() } else { day.unwrap_or_default() };
                    (text, &before[..=open])
                }
                (Some((figure, is_goal)), Some(open)) => {
                    let full = match is_goal {
                        true => figure
                            .goal
                            .clone()
                            .ok_or_else(|| format!("{} has no goal", figure.name))?,
                        false => figure.text(),
                    };
                    if is_goal {
                        goals.insert(full.clone());
                    } else if let (true, Some(goal)) = (figure.is_missed(), &figure.goal) {
                        missed.insert(goal.clone(), figure.name.clone());
                    }
                    let present =
                        before[open + 1..].split_whitespace().collect::<Vec<_>>().join(" ");
                    let brief = !is_goal
                        && (figure.brief.as_deref() == Some(&present) || figure.found == present);
                    let same = present == full || brief;
                    (if same { before[open + 1..].to_string() } else { full }, &before[..=open])
                }
                _ => (String::new(), before),
            };
            let _ = write!(out, "{from}{text}]({target})");
            rest = tail;
        }
        out.push_str(rest);
        if strict {
            if let Some((goal, name)) = missed.iter().find(|(goal, _)| !goals.contains(*goal)) {
                return Err(format!(
                    "{name} misses its goal; say so, with [{goal}]({PAGE}#{name}-goal)"
                ));
            }
            if let Some(line) = unquoted(&out) {
                return Err(format!("a figure that quotes none of docs/figures.toml: {line}"));
            }
        }
        Ok(out)
    }

    /// A file of code with the rest of each line after "figure NAME: " as it is to be.
    pub fn refill_code(&self, code: &str) -> Result<String, String> {
        let line = |line: &str| match line.split_once("figure ") {
            Some((before, after)) => match after.split_once(": ") {
                Some((name, _)) => {
                    let figure =
                        self.find(name).ok_or_else(|| format!("there is no figure {name}"))?;
                    Ok(format!("{before}figure {name}: {}\n", figure.text()))
                }
                None => Ok(format!("{line}\n")),
            },
            None => Ok(format!("{line}\n")),
        };
        code.lines().map(line).collect()
    }
}

/// The first line with a figure and its half-width that is not within a link or an example.
fn unquoted(page: &str) -> Option<&str> {
    let mut in_fence = false;
    page.lines().find(|line| {
        if line.trim_start().starts_with("```") {
            in_fence = !in_fence;
        }
        if in_fence || line.starts_with("    ") {
            return false;
        }
        let mut rest = *line;
        while let Some((before, after)) = rest.split_once('±') {
            let figure = |c: char| c.is_alphanumeric() || c == '%';
            let is_figure = before.trim_end().ends_with(figure)
                && after.trim_start().starts_with(|c: char| c.is_ascii_digit());
            let in_link = after
                .find(']')
                .is_some_and(|end| after[end..].starts_with("](") && !after[..end].contains('['));
            if is_figure && !in_link {
                return true;
            }
            rest = after;
        }
        false
    })
}

/// A table whose empty cells have one blank.
fn close_empty(table: &str) -> String {
    // Twice, because cells share their borders.
    table.replace("|  |", "| |").replace("|  |", "| |")
}

impl Group {
    /// The rows and, numbered from `first` on, the runs.
    fn table(&self, first: usize) -> String {
        let figures = || self.runs.iter().flat_map(|run| &run.figures);
        let has_control = figures().any(|figure| figure.control.is_some());
        let has_goal = figures().any(|figure| figure.goal.is_some());
        let heading =
            |title: &str, shown: bool| if shown { format!(" {title} |") } else { String::new() };
        let columns = 3 + usize::from(has_control) + 2 * usize::from(has_goal);
        let mut out = format!(
            "| {} | found |{}{}{} run |\n{}|\n",
            self.what,
            heading("control", has_control),
            heading("goal", has_goal),
            heading("met", has_goal),
            "|---".repeat(columns)
        );
        let runs: Vec<(usize, &Run)> = (first..).zip(&self.runs).collect();
        for (run, figure) in
            runs.iter().flat_map(|(run, of)| of.figures.iter().map(move |f| (run, f)))
        {
            let name = &figure.name;
            let _ = write!(out, "| <a id=\"{name}\"></a>{} | {} |", figure.what, figure.text());
            if has_control {
                let _ = write!(out, " {} |", figure.control.as_deref().unwrap_or_default());
            }
            if has_goal {
                let goal = figure.goal.as_ref();
                let goal = goal.map(|goal| format!("<a id=\"{name}-goal\"></a>{goal}"));
                let met = figure.met.as_deref().unwrap_or_default();
                let met =
                    if figure.is_missed() { met.replacen("no", "**no**", 1) } else { met.into() };
                let _ = write!(out, " {} | {met} |", goal.unwrap_or_default());
            }
            let _ = writeln!(out, " {run} |");
        }
        out = close_empty(&out);
        out.push('\n');
        for (number, run) in runs {
            // A remark in parentheses says for which rows the command was varied; it is not to be typed.
            let whole = run.command.strip_suffix(')');
            let (command, remark) = match whole.and_then(|whole| whole.rsplit_once(" (")) {
                Some((command, rest)) => (command, format!(" ({rest})")),
                None => (run.command.as_str(), String::new()),
            };
            let _ = writeln!(
                out,
                "- run {number}: {}, <a id=\"{}-date\"></a>{}: `{command}`{remark}",
                run.machine,
                run.first(),
                run.day()
            );
        }
        out
    }
}

impl Instructions {
    fn table(&self) -> String {
        let titles = self.workloads.iter().map(|(_, title)| format!(" {title}: added | library |"));
        let mut out = format!(
            "| per transaction |{}\n{}|\n",
            titles.collect::<String>(),
            "|---".repeat(1 + 2 * self.workloads.len())
        );
        for row in &self.rows {
            let _ = writeln!(out, "| {} | {} |", row.title, row.cells.join(" | "));
        }
        close_empty(&out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        quoted_in = []
        [machines]
        here = "a machine"
        [[group]]
        name = "cost"
        what = "CPU time"
        [[group.run]]
        machine = "here"
        date = "2026-11-24"
        version = "0.1.0"
        command = "tally cost"
        figures = [
            { name = "one", what = "of one", found = "+1.11 %", half_width = "0.08", brief = "about 1 %", goal = "+0.6 %", met = "no" },
            { name = "two", what = "of two", baseline = "select off library" },
            { name = "half", what = "of that", baseline = "select off library", per = 2468 },
        ]
        [[instructions]]
        name = "instructions"
        workloads = [["select", "select"]]
        rows = [{ title = "nothing", cells = ["of 10", ""] }, { title = "off", arm = "off" }]
    "#;
    const BASELINE: &str = "# x\nfigure select off library 1233.6\nfigure select off added 2.0\n";

    fn figures() -> Figures {
        Figures::read(TEXT, BASELINE).unwrap()
    }

    #[test]
    fn a_figure_has_a_row_with_its_goal_and_the_run_that_measured_it() {
        let tables = figures().tables();
        assert_eq!(
            tables["figures of cost"],
            "| CPU time | found | goal | met | run |\n|---|---|---|---|---|\n\
             | <a id=\"one\"></a>of one | +1.11 % ± 0.08 | <a id=\"one-goal\"></a>+0.6 % | **no** | 1 |\n\
             | <a id=\"two\"></a>of two | 1,234 | | | 1 |\n\
             | <a id=\"half\"></a>of that | 50.0 % | | | 1 |\n\
             \n- run 1: here, <a id=\"one-date\"></a>2026-11-24, version 0.1.0: `tally cost`\n"
        );
        assert_eq!(
            tables["instructions"],
            "| per transaction | select: added | library |\n|---|---|---|\n\
             | nothing | of 10 | |\n| off | 2 | 1,234 |\n"
        );
    }

    #[test]
    fn a_quotation_gets_the_present_value_and_may_be_rounded_or_broken() {
        let requoted = |page: &str| figures().requote(page, false).unwrap();
        assert_eq!(
            requoted("It takes [+9.9 %](docs/results.md#one), goal [+0.1 %](results.md#one-goal)."),
            "It takes [+1.11 % ± 0.08](docs/results.md#one), goal [+0.6 %](results.md#one-goal)."
        );
        assert_eq!(
            requoted("On [2026-01-01](docs/results.md#one-date)."),
            "On [2026-11-24, version 0.1.0](docs/results.md#one-date)."
        );
        for kept in [
            "[+1.11 %\n± 0.08](results.md#one)",
            "[2026-01-01](results.md#two-date)",
            "[2026-11-24,\nversion 0.1.0](results.md#one-date)",
            "[about 1 %](results.md#one)",
            "[+1.11 %](results.md#one)",
            "[other](results.md#other) [page](other.md#one) [x](y.md)",
        ] {
            assert_eq!(requoted(kept), kept);
        }
    }

    #[test]
    fn a_page_that_hides_a_missed_goal_or_has_a_figure_of_its_own_is_refused() {
        let refused = |page: &str| figures().requote(page, true).unwrap_err();
        let goal = "[+0.6 %](results.md#one-goal)";
        assert!(refused("[+1.11 % ± 0.08](results.md#one)").contains("misses its goal"));
        assert!(refused("It takes +1.35 % ± 0.1.").contains("quotes none"));
        assert!(refused(&format!("{goal} [a](b) 5 ns ± 1 [c](d)")).contains("quotes none"));
        let accepted =
            format!("[+1.11 % ± 0.08](results.md#one), goal {goal}; the number after ±\n```\n5 % ± 1\n```\n");
        assert_eq!(figures().requote(&accepted, true), Ok(accepted));
    }

    #[test]
    fn code_quotes_a_figure_at_the_end_of_a_line() {
        assert_eq!(
            figures().refill_code("let x; // figure one: old\n// no figure here\n").unwrap(),
            "let x; // figure one: +1.11 % ± 0.08\n// no figure here\n"
        );
        assert!(figures().refill_code("// figure unknown: 1\n").is_err());
    }

    #[test]
    fn figures_are_told_apart_and_complete() {
        let read =
            |from: &str, to: &str| Figures::read(&TEXT.replace(from, to), BASELINE).unwrap_err();
        assert!(read("\"two\"", "\"one\"").contains("another figure"));
        assert!(read("\"two\"", "\"two-date\"").contains("goal or date"));
        assert!(read(", met = \"no\"", "").contains("`met` is, too"));
        assert!(read("machine = \"here\"", "machine = \"there\"").contains("no machine there"));
        assert!(read("select off library\", per", "select on library\", per").contains("baseline"));
    }
}
