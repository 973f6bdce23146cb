// SPDX-License-Identifier: PostgreSQL
//! Which index a plan lacks: the tables that it reads as a whole, the columns by which it looks for rows, and what the catalog
//! says about them.
//!
//! A plan shows what a statement does, and only the catalog shows which indexes exist; [`WholeScan::choose`]
//! decides on the columns of an index from both. The code that queries the catalog uses this to determine its
//! queries, and diagnoses use it to name the index.

use crate::vacuum::{Condition, ConditionKind};

/// A table that a plan reads as a whole for some of its rows.
#[derive(Debug, Clone, PartialEq)]
pub struct WholeScan {
    /// OID of the table; 0: not known.
    pub table_id: u32,
    /// Its name, without its schema.
    pub table: String,
    /// Its rows, as of the last ANALYZE.
    pub rows: f64,
    /// Why some of its rows are enough.
    pub purpose: Purpose,
    /// The columns by which the plan looks for them.
    pub terms: Vec<Term>,
    /// Whether there are no other conditions.
    pub complete: bool,
    /// Rows that the statement needs of it each time, as the planner estimates them.
    pub wanted: f64,
    /// Whether the plan may read it several times.
    pub repeated: bool,
    /// Whether what the plan finds in it is what the statement returns or changes.
    pub passes: bool,
}

/// Why a plan needs some rows of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// It removes the others by a filter.
    Filter,
    /// It joins them with few rows.
    Join,
    /// It returns the first ones in an order.
    Order,
}

/// A column by which a plan looks for rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    /// Its name, not quoted.
    pub column: String,
    /// What the plan does with it.
    pub kind: TermKind,
}

/// What a plan does with a column, in the order of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TermKind {
    /// Compares it with a value, or with the columns of other tables.
    Equal,
    /// Looks for rows where it is null.
    Null,
    /// Compares it with the elements of an array.
    Any,
    /// Orders by it.
    Order,
    /// Compares it with a limit.
    Range,
}

/// An index that would help.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexChoice {
    /// Its columns, not quoted.
    pub columns: Vec<String>,
    /// How many of them at its end may not change places with the others: one that is a range or an order.
    pub ordered: usize,
    /// Rows that it would find each time; `None`: not known.
    pub finds: Option<f64>,
}

/// What the catalog says about a table.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownTable<'c> {
    /// Its name as SQL needs it, with its schema.
    pub name: &'c str,
    /// Its size, blocks.
    pub blocks: f64,
    /// The partitioned table that it belongs to.
    pub parent: Option<&'c str>,
    /// Whether the server is a standby.
    pub standby: bool,
    /// The columns that plans mention.
    pub columns: Vec<KnownColumn>,
    /// Its indexes.
    pub indexes: Vec<KnownIndex<'c>>,
    /// Its references to other tables.
    pub foreign_keys: Vec<ForeignKey<'c>>,
    /// Costs of the planner without and with an index that does not exist, for its columns.
    pub hypothetical: Vec<(Vec<String>, f64, f64)>,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownColumn {
    /// Its name, not quoted.
    pub name: String,
    /// Its name as SQL needs it.
    pub quoted: String,
    /// Number of its values; `None`: not known.
    pub distinct: Option<f64>,
    /// Rows in which it is null.
    pub nulls: f64,
}

/// An index of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownIndex<'c> {
    /// Its name as SQL needs it, with its schema.
    pub name: &'c str,
    /// Its columns, not quoted; `?` for an expression.
    pub columns: Vec<String>,
    /// Whether it can be used.
    pub valid: bool,
    /// Whether it is a B-tree of all rows.
    pub ordinary: bool,
}

/// A reference of a table to another one.
#[derive(Debug, Clone, PartialEq)]
pub struct ForeignKey<'c> {
    /// Its name as SQL needs it.
    pub name: &'c str,
    /// Its columns, not quoted.
    pub columns: Vec<String>,
    /// The other table.
    pub references: &'c str,
}

// ---------------------------------------------------------------- plans

/// A node of a plan's text.
#[derive(Debug)]
struct PlanNode<'p> {
    depth: usize,
    name: &'p str,
    /// Estimated rows, of all processes.
    rows: f64,
    filter: Option<&'p str>,
    join: Option<&'p str>,
    sort: Option<&'p str>,
    /// Rows and OID of its table.
    table: Option<(f64, u32)>,
    parent: Option<usize>,
    children: Vec<usize>,
}

/// Divisor of the planned rows of a node below Gather: two workers and a part of the leader (get_parallel_divisor, costsize.c).
const PROCESSES: f64 = 2.4;

impl<'p> PlanNode<'p> {
    fn parse(line: &'p str) -> PlanNode<'p> {
        let text = line.trim_start();
        let name = text.find("  (cost=").map_or(text, |at| &text[..at]);
        let rest = &text[name.len()..];
        let end = rest.find(')').map_or(rest.len(), |at| at + 1);
        let (estimates, mut tags) = rest.split_at(end);
        // Whoever may name a table can put "nan" there.
        let number = |text: &str| -> Option<f64> {
            text.split([' ', ',']).next()?.parse().ok().filter(|number: &f64| number.is_finite())
        };
        let rows = estimates.split_once("rows=").and_then(|(_, rest)| number(rest)).unwrap_or(0.0);
        let mut node = PlanNode {
            depth: (line.len() - text.len()) / 2,
            name,
            rows,
            filter: None,
            join: None,
            sort: None,
            table: None,
            parent: None,
            children: Vec::new(),
        };
        while let Some(tag) = tags.strip_prefix(" [") {
            let end = end_of(tag, ']');
            let (content, kind) = (&tag[..end], tag.split([':', ' ', ']']).next());
            let list = content.split_once(": ").map_or("...", |(_, list)| list);
            match kind {
                Some("filter") => node.filter = Some(list),
                Some("join") => node.join = Some(list),
                Some("sort") => node.sort = Some(list),
                Some("table") => {
                    let rows = content.strip_prefix("table of ").and_then(number);
                    let id = content.split_once("OID ").and_then(|(_, id)| id.parse().ok());
                    node.table = rows.map(|rows| (rows, id.unwrap_or(0)));
                }
                _ => {}
            }
            tags = tag.get(end + 1..).unwrap_or_default();
        }
        node
    }

    /// The table that it reads as a whole.
    fn scanned(&self) -> Option<&'p str> {
        let (kind, table) = self.name.split_once("Seq Scan on ")?;
        (kind.is_empty() || kind == "Parallel ").then_some(table)
    }

    fn is(&self, names: &[&str]) -> bool {
        let name = self.name.strip_prefix("Parallel ").unwrap_or(self.name);
        names.contains(&name)
    }
}

/// Where this character is outside of quotes, or the end.
fn end_of(text: &str, end: char) -> usize {
    let mut quoted = false;
    for (at, c) in text.char_indices() {
        quoted ^= c == '"';
        if c == end && !quoted {
            return at;
        }
    }
    text.len()
}

/// The items of a list. A comma in quotes is part of its item.
fn items(mut list: &str) -> Vec<&str> {
    let mut all = Vec::new();
    while !list.is_empty() {
        let end = end_of(list, ',');
        all.push(list[..end].trim());
        list = list.get(end + 1..).unwrap_or_default();
    }
    all
}

/// The name at the beginning of a text, without its quotes, and what follows it.
fn split_name(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([' ', '.', ',', ')']).unwrap_or(text.len());
        return (text[..end].to_owned(), &text[end..]);
    };
    let mut name = String::new();
    let mut rest = quoted;
    while let Some((part, after)) = rest.split_once('"') {
        name.push_str(part);
        rest = after;
        match rest.strip_prefix('"') {
            Some(more) => {
                name.push('"');
                rest = more;
            }
            None => break,
        }
    }
    (name, rest)
}

/// A name without its quotes.
fn unquoted(name: &str) -> String {
    split_name(name).0
}

fn nodes(plan: &str) -> Vec<PlanNode<'_>> {
    let mut all: Vec<PlanNode<'_>> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    for line in plan.lines().filter(|line| !line.trim().is_empty()) {
        let mut node = PlanNode::parse(line);
        while open.last().is_some_and(|at| all[*at].depth >= node.depth) {
            open.pop();
        }
        node.parent = open.last().copied();
        let divided = open.iter().any(|at| all[*at].is(&["Gather", "Gather Merge"]));
        if divided {
            node.rows *= PROCESSES;
        }
        let at = all.len();
        if let Some(parent) = node.parent {
            all[parent].children.push(at);
        }
        all.push(node);
        open.push(at);
    }
    all
}

impl WholeScan {
    /// Those of a plan: of a table, the filter comes before the join and the order.
    pub fn all(plan: &str) -> Vec<WholeScan> {
        let nodes = nodes(plan);
        let mut all: Vec<WholeScan> = (0..nodes.len())
            .flat_map(|at| [by_filter(&nodes, at), by_join(&nodes, at), by_order(&nodes, at)])
            .flatten()
            .collect();
        all.sort_by(|a, b| a.purpose.cmp(&b.purpose).then(b.rows.total_cmp(&a.rows)));
        all
    }
}

/// The OIDs of the tables from which a plan deletes rows, or whose rows it updates.
pub fn changed_tables(plan: &str) -> Vec<u32> {
    let changes = ["Delete on ", "Update on ", "Merge on "];
    let nodes = nodes(plan);
    let changed =
        nodes.iter().filter(|node| changes.iter().any(|begin| node.name.starts_with(begin)));
    changed.filter_map(|node| node.table.map(|(_, id)| id)).filter(|id| *id != 0).collect()
}

fn scan(nodes: &[PlanNode<'_>], at: usize, purpose: Purpose) -> Option<WholeScan> {
    let node = &nodes[at];
    let (rows, table_id) = node.table?;
    let above = ancestors(nodes, at);
    let runs_again = |&(below, above): &(usize, usize)| {
        let node = &nodes[above];
        // The second input; without a copy of it, it is read for each row of the first one.
        node.name.starts_with("Nested Loop") && node.children.first() != Some(&below)
    };
    let materialized = above.iter().any(|(_, node)| nodes[*node].is(&["Materialize", "Memoize"]));
    // A scan has no input: what is below it is a subplan.
    let of_subplan = above.iter().any(|(_, node)| nodes[*node].name.contains("Scan on "));
    let passes = above.iter().all(|(_, number)| {
        let kinds = ["Gather", "Gather Merge", "Sort", "LockRows", "Append", "Result", "Limit"];
        let node = &nodes[*number];
        node.is(&kinds)
            || node.name.starts_with("Update on ")
            || node.name.starts_with("Delete on ")
    });
    let limited = above.iter().any(|(_, node)| nodes[*node].is(&["Limit"]));
    Some(WholeScan {
        table_id,
        table: node.scanned()?.to_owned(),
        rows,
        purpose,
        terms: Vec::new(),
        complete: true,
        wanted: node.rows,
        repeated: of_subplan || !materialized && above.iter().any(runs_again),
        passes: passes && !limited,
    })
}

/// The nodes above it, each with the one below it.
fn ancestors(nodes: &[PlanNode<'_>], at: usize) -> Vec<(usize, usize)> {
    std::iter::successors(nodes[at].parent.map(|above| (at, above)), |&(_, below)| {
        nodes[below].parent.map(|above| (below, above))
    })
    .collect()
}

/// The terms of a filter, and whether there are no other conditions.
fn filter_terms(list: &str) -> (Vec<Term>, bool) {
    let mut terms: Vec<Term> = Vec::new();
    let mut complete = true;
    for item in items(list) {
        let (column, rest) = split_name(item);
        let kind = match rest.trim() {
            "=" => TermKind::Equal,
            "= any" => TermKind::Any,
            "is null" => TermKind::Null,
            "<" | "<=" | ">" | ">=" => TermKind::Range,
            _ => {
                complete = false;
                continue;
            }
        };
        if !terms.iter().any(|term| term.column == column) {
            terms.push(Term { column, kind });
        }
    }
    (terms, complete)
}

fn by_filter(nodes: &[PlanNode<'_>], at: usize) -> Option<WholeScan> {
    let (terms, complete) = filter_terms(nodes[at].filter?);
    Some(WholeScan { terms, complete, ..scan(nodes, at, Purpose::Filter)? })
}

/// Nodes between a join or sort and the scan of its rows.
const BETWEEN: [&str; 5] = ["Hash", "Sort", "Materialize", "Gather", "Gather Merge"];

fn by_join(nodes: &[PlanNode<'_>], at: usize) -> Option<WholeScan> {
    let table = nodes[at].scanned()?;
    let above = ancestors(nodes, at);
    let &(below, join) = above.iter().find(|(_, node)| !nodes[*node].is(&BETWEEN))?;
    let (join, list) = (&nodes[join], nodes[join].join?);
    let [first, second] = join.children[..] else { return None };
    let other = &nodes[if below == first { second } else { first }];
    let column = |clause: &str| {
        let (left_table, rest) = split_name(clause);
        let (left, rest) = split_name(rest.strip_prefix('.')?);
        let (right_table, rest) = split_name(rest.strip_prefix(" = ")?);
        let (right, _) = split_name(rest.strip_prefix('.')?);
        let (of, column) = if below == first { (left_table, left) } else { (right_table, right) };
        (of == table).then_some(Term { column, kind: TermKind::Equal })
    };
    let terms: Vec<Term> = items(list).into_iter().filter_map(column).collect();
    let wanted = join.rows.max(other.rows).max(1.0);
    (!terms.is_empty()).then_some(())?;
    Some(WholeScan { terms, wanted, passes: false, ..scan(nodes, at, Purpose::Join)? })
}

fn by_order(nodes: &[PlanNode<'_>], at: usize) -> Option<WholeScan> {
    let table = nodes[at].scanned()?;
    let sort = &nodes[nodes[at].parent?];
    let list = sort.sort?;
    let above = ancestors(nodes, at);
    let limit = above.iter().map(|(_, node)| &nodes[*node]).find(|node| !node.is(&BETWEEN))?;
    let (mut terms, complete) = filter_terms(nodes[at].filter.unwrap_or_default());
    // Rows that other conditions remove would be read as well.
    if !limit.is(&["Limit"]) || !complete || terms.iter().any(|term| term.kind != TermKind::Equal) {
        return None;
    }
    let mut first: Option<bool> = None;
    for item in items(list) {
        let (of, rest) = split_name(item);
        let (column, rest) = split_name(rest.strip_prefix('.')?);
        let nulls_first = rest == " nulls first";
        // One index has one direction.
        if of != table || *first.get_or_insert(nulls_first) != nulls_first {
            return None;
        }
        if !terms.iter().any(|term| term.column == column) {
            terms.push(Term { column, kind: TermKind::Order });
        }
    }
    let wanted = limit.rows.max(1.0);
    Some(WholeScan { terms, wanted, passes: false, ..scan(nodes, at, Purpose::Order)? })
}

// ---------------------------------------------------------------- the choice

/// An index that finds a larger part of a table does not pay: the planner reads the table.
const PART: f64 = 0.1;
/// Further columns are left out as soon as so few rows are found.
const FEW: f64 = 10.0;
/// Most columns of an index for a filter ...
const COLUMNS: usize = 3;
/// ... and with those of an order.
const WIDEST: usize = 5;
/// What the planner takes for the part of a range whose limit it does not know (DEFAULT_INEQ_SEL, selfuncs.h).
const UNKNOWN_RANGE: f64 = 1.0 / 3.0;

impl WholeScan {
    /// The index that would help; `None`: there is none, because it would find too many rows or no column is known.
    /// `returned`: rows that the statement returns or changes for each time that it reads the table.
    pub fn choose(
        &self,
        table: Option<&KnownTable<'_>>,
        returned: Option<f64>,
    ) -> Option<IndexChoice> {
        let known = |column: &str| table.and_then(|table| table.column(column));
        let distinct = |column: &str| known(column).and_then(|column| column.distinct);
        let part = |term: &Term| -> Option<f64> {
            match term.kind {
                TermKind::Equal => distinct(&term.column).map(|n| 1.0 / n.max(1.0)),
                TermKind::Any => distinct(&term.column).map(|n| (FEW / n.max(1.0)).min(1.0)),
                TermKind::Null => {
                    known(&term.column).map(|column| column.nulls / self.rows.max(1.0))
                }
                TermKind::Order | TermKind::Range => None,
            }
        };
        let is_point =
            |term: &&Term| matches!(term.kind, TermKind::Equal | TermKind::Null | TermKind::Any);
        let mut points: Vec<&Term> = self.terms.iter().filter(is_point).collect();
        points.sort_by(|a, b| {
            let of = |term: &Term| part(term).unwrap_or(1.0);
            a.kind.cmp(&b.kind).then(of(a).total_cmp(&of(b)))
        });
        let mut choice = IndexChoice { columns: Vec::new(), ordered: 0, finds: None };
        let (mut rows, mut estimated) = (self.rows, true);
        for term in &points {
            // A column with one value finds nothing.
            if choice.columns.len() == COLUMNS
                || (estimated && rows <= FEW)
                || part(term) == Some(1.0)
            {
                break;
            }
            choice.columns.push(term.column.clone());
            match part(term) {
                Some(part) => rows *= part,
                None => estimated = false,
            }
        }
        let order: Vec<&Term> =
            self.terms.iter().filter(|term| term.kind == TermKind::Order).collect();
        // Of several ranges, that of the column with most values narrows most.
        let ranges = self.terms.iter().rev().filter(|term| term.kind == TermKind::Range);
        let values = |term: &&Term| distinct(&term.column).unwrap_or(0.0);
        let range = ranges.max_by(|a, b| values(a).total_cmp(&values(b)));
        let few = estimated && rows <= FEW;
        let more = match range {
            Some(range) if order.is_empty() && !few && choice.columns.len() < COLUMNS => {
                vec![range]
            }
            _ => order,
        };
        if choice.columns.len() + more.len() > WIDEST {
            return None;
        }
        choice.ordered = more.len();
        choice.columns.extend(more.iter().map(|term| term.column.clone()));
        let all = choice.columns.len() == self.terms.len();
        let measured = returned.filter(|_| self.passes && self.complete);
        let wanted = Some(self.wanted).filter(|_| !self.is_of_unknown_range());
        choice.finds = match self.purpose {
            Purpose::Filter if all && self.complete => measured.or(wanted),
            Purpose::Filter => Some(rows).filter(|_| estimated && choice.ordered == 0),
            Purpose::Join | Purpose::Order => Some(self.wanted),
        };
        let pays = choice.finds.is_none_or(|finds| finds <= PART * self.rows);
        let needs_many = measured.is_none() && self.needs_many();
        (!choice.columns.is_empty() && pays && !needs_many).then_some(choice)
    }

    /// Whether the planner knows nothing about the limit of a range.
    fn is_of_unknown_range(&self) -> bool {
        (self.wanted / self.rows.max(1.0) - UNKNOWN_RANGE).abs() < 0.005
    }

    /// Whether all conditions together leave too many rows for an index, as the planner estimates.
    pub fn needs_many(&self) -> bool {
        self.wanted > PART * self.rows && !self.is_of_unknown_range()
    }
}

// ---------------------------------------------------------------- the catalog

impl<'c> KnownTable<'c> {
    /// What the conditions say about the table of this OID in a database.
    pub fn find(conditions: &'c [Condition], database: &str, id: u32) -> Option<KnownTable<'c>> {
        let here = of_database(conditions, database, ConditionKind::Table);
        let table =
            here.into_iter().find(|condition| condition.count == i64::from(id) && id != 0)?;
        Some(KnownTable::known(conditions, database, table))
    }

    /// Those that refer to the table of this OID, the largest first.
    pub fn referring(conditions: &'c [Condition], database: &str, id: u32) -> Vec<KnownTable<'c>> {
        let Some(table) = KnownTable::find(conditions, database, id) else { return Vec::new() };
        let all = of_database(conditions, database, ConditionKind::Table).into_iter();
        let all = all.map(|table| KnownTable::known(conditions, database, table));
        let refers = |other: &KnownTable<'_>| {
            other.foreign_keys.iter().any(|key| key.references == table.name)
        };
        let mut all: Vec<_> = all.filter(refers).collect();
        all.sort_by(|a, b| b.blocks.total_cmp(&a.blocks));
        all
    }

    fn known(conditions: &'c [Condition], database: &str, table: &'c Condition) -> KnownTable<'c> {
        let of = |kind: ConditionKind| of_database(conditions, database, kind).into_iter();
        let name = table.name.as_str();
        let (standby, state) = match table.state.strip_suffix(", standby") {
            Some(rest) => (true, rest),
            None if table.state == "standby" => (true, ""),
            None => (false, table.state.as_str()),
        };
        let columns = of(ConditionKind::Column).filter(|row| row.state == name);
        let indexes = of(ConditionKind::Index).filter_map(|row| {
            let (columns, rest) = listed(&row.state, name)?;
            Some(KnownIndex {
                name: &row.name,
                columns,
                valid: !rest.contains(", invalid"),
                ordinary: !rest.contains(", partial") && !rest.contains(", method"),
            })
        });
        let foreign_keys = of(ConditionKind::ForeignKey).filter_map(|row| {
            let (columns, rest) = listed(&row.state, name)?;
            let references = rest.strip_prefix(" references ")?;
            Some(ForeignKey { name: &row.name, columns, references })
        });
        let hypothetical = of(ConditionKind::HypotheticalIndex).filter_map(|row| {
            let (columns, _) = listed(&row.state, name)?;
            Some((columns, row.count as f64, row.bytes as f64))
        });
        KnownTable {
            name,
            blocks: table.bytes as f64 / 8192.0,
            parent: state.strip_prefix("partition of "),
            standby,
            columns: columns
                .map(|row| KnownColumn {
                    name: unquoted(&row.name),
                    quoted: row.name.clone(),
                    distinct: (row.count > 0).then_some(row.count as f64),
                    nulls: row.bytes as f64,
                })
                .collect(),
            indexes: indexes.collect(),
            foreign_keys: foreign_keys.collect(),
            hypothetical: hypothetical.collect(),
        }
    }

    /// The column of this name.
    pub fn column(&self, name: &str) -> Option<&KnownColumn> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// An index that finds what the chosen one would find: a valid one before others.
    pub fn index(&self, choice: &IndexChoice) -> Option<&KnownIndex<'c>> {
        let mut serves: Vec<&KnownIndex<'c>> = self
            .indexes
            .iter()
            .filter(|index| index.ordinary && choice.is_begin_of(&index.columns))
            .collect();
        serves.sort_by_key(|index| !index.valid);
        serves.first().copied()
    }

    /// The foreign key of these columns.
    pub fn foreign_key(&self, columns: &[String]) -> Option<&ForeignKey<'c>> {
        let same = |key: &&ForeignKey<'_>| {
            columns.iter().all(|column| key.columns.contains(column)) && !columns.is_empty()
        };
        self.foreign_keys.iter().find(same)
    }

    /// The columns of an index as SQL needs them: "customer, \"createdAt\""; `None`: one is not known.
    pub fn list(&self, choice: &IndexChoice) -> Option<String> {
        let quoted = choice.columns.iter().map(|column| Some(self.column(column)?.quoted.as_str()));
        Some(quoted.collect::<Option<Vec<_>>>()?.join(", "))
    }

    /// Costs of the planner without and with the index.
    pub fn costs(&self, choice: &IndexChoice) -> Option<(f64, f64)> {
        let found = self.hypothetical.iter().find(|(columns, ..)| *columns == choice.columns);
        found.map(|(_, before, after)| (*before, *after))
    }
}

impl IndexChoice {
    /// Whether an index of these columns has those of the choice first, in an order that serves.
    fn is_begin_of(&self, columns: &[String]) -> bool {
        let (points, ordered) = self.columns.split_at(self.columns.len() - self.ordered);
        columns.len() >= self.columns.len()
            && points.iter().all(|point| columns[..points.len()].contains(point))
            && columns[points.len()..].starts_with(ordered)
    }
}

/// The conditions of a kind in a database.
fn of_database<'c>(
    conditions: &'c [Condition],
    database: &str,
    kind: ConditionKind,
) -> Vec<&'c Condition> {
    let here = |row: &&Condition| row.kind == kind && row.database.as_deref() == Some(database);
    conditions.iter().filter(here).collect()
}

/// The columns in "public.t (a, b), partial" if that is the table, and what follows them.
fn listed<'s>(state: &'s str, table: &str) -> Option<(Vec<String>, &'s str)> {
    let list = state.strip_prefix(table)?.strip_prefix(" (")?;
    let end = end_of(list, ')');
    let columns = items(&list[..end]).into_iter().map(unquoted).collect();
    Some((columns, list.get(end + 1..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(depth: usize, name: &str, rows: u64, tags: &str) -> String {
        format!("{:1$}{name}  (cost=0.00..9.00 rows={rows} width=4){tags}\n", "", 2 * depth)
    }

    fn only(plan: &str) -> WholeScan {
        let mut all = WholeScan::all(plan);
        assert_eq!(all.len(), 1, "{all:?}");
        all.remove(0)
    }

    fn terms(scan: &WholeScan) -> Vec<(&str, TermKind)> {
        scan.terms.iter().map(|term| (term.column.as_str(), term.kind)).collect()
    }

    const TABLE: &str = " [table of 300000 rows, OID 7]";

    /// A filter on a table of 300,000 rows that leaves this many.
    fn filtered(filter: &str, rows: u64) -> WholeScan {
        only(&line(0, "Seq Scan on orders", rows, &format!(" [filter{filter}]{TABLE}")))
    }

    #[test]
    fn a_plan_says_which_columns_it_compares() {
        let scan = filtered(
            ": created >=, created <, customer =, \"Odd, \"\"name]\" = any, gone is null, ...",
            6,
        );
        let expected = [
            ("created", TermKind::Range),
            ("customer", TermKind::Equal),
            ("Odd, \"name]", TermKind::Any),
            ("gone", TermKind::Null),
        ];
        assert_eq!(terms(&scan), expected);
        assert_eq!(
            (scan.table_id, scan.table.as_str(), scan.rows, scan.wanted),
            (7, "orders", 300_000.0, 6.0)
        );
        assert!(!scan.complete && scan.passes && !scan.repeated);
        // As it was before columns were noted, and as it is without OID.
        let old = only(&line(0, "Seq Scan on t", 2, " [filter] [table of 50 rows]"));
        assert_eq!((old.table_id, old.rows, old.terms.len(), old.complete), (0, 50.0, 0, false));
        let index = line(0, "Index Scan using i on t", 2, " [filter: a =]");
        assert_eq!(WholeScan::all(&index), []);
        assert_eq!(WholeScan::all("Seq Scan on t"), []);
    }

    /// Whoever may name a table decides on what stands in its line.
    #[test]
    fn a_number_that_is_none_is_no_table() {
        let tags = " [filter: customer =] [table of nan rows, OID 7]";
        let plan = line(0, "Append", 9, "")
            + &line(1, "Seq Scan on a", 5, tags)
            + &line(1, "Seq Scan on b", 5, tags);
        assert_eq!(WholeScan::all(&plan), []);
        assert_eq!(WholeScan::all(&plan.replace("nan", "inf")), []);
    }

    #[test]
    fn workers_divide_the_rows_among_them() {
        let tags = format!(" [filter: customer =]{TABLE}");
        let plan = line(0, "Gather", 6, "") + &line(1, "Parallel Seq Scan on orders", 5, &tags);
        assert_eq!(only(&plan).wanted, 12.0);
    }

    #[test]
    fn a_join_with_few_rows_looks_for_them() {
        let join = " [join: lines.order_id = orders.id, ...]";
        let plan = |rows: u64| {
            line(0, "Hash Join", rows, join)
                + &line(1, "Seq Scan on lines", 300_000, TABLE)
                + &line(1, "Hash", 1, "")
                + &line(2, "Index Scan using orders_pkey on orders", 1, "")
        };
        let scan = only(&plan(3));
        assert_eq!(
            (scan.purpose, terms(&scan)),
            (Purpose::Join, vec![("order_id", TermKind::Equal)])
        );
        let choice = scan.choose(None, None).unwrap();
        assert_eq!((choice.columns, choice.finds), (vec!["order_id".to_owned()], Some(3.0)));
        assert_eq!(only(&plan(100_000)).choose(None, None), None, "most of the table is joined");
        // The table is the second input.
        let second = line(0, "Nested Loop", 3, " [join: orders.id = lines.order_id]")
            + &line(1, "Index Scan using orders_pkey on orders", 1, "")
            + &line(1, "Seq Scan on lines", 300_000, TABLE);
        let scan = only(&second);
        assert_eq!(terms(&scan), [("order_id", TermKind::Equal)]);
        assert!(scan.repeated);
    }

    #[test]
    fn the_first_rows_of_an_order_need_no_sort() {
        let plan = |sort: &str, filter: &str| {
            line(0, "Limit", 10, "")
                + &line(1, "Sort", 300_000, &format!(" [sort: {sort}]"))
                + &line(2, "Seq Scan on orders", 300_000, &format!("{filter}{TABLE}"))
        };
        let found = |sort: &str, filter: &str| {
            let all = WholeScan::all(&plan(sort, filter));
            let scan = all.into_iter().find(|scan| scan.purpose == Purpose::Order)?;
            scan.choose(None, None).map(|choice| choice.columns.join(", "))
        };
        assert_eq!(
            found("orders.at nulls first, orders.id nulls first", "").as_deref(),
            Some("at, id")
        );
        assert_eq!(found("orders.at", " [filter: shop =]").as_deref(), Some("shop, at"));
        assert_eq!(found("orders.at nulls first, orders.id", ""), None, "two directions");
        assert_eq!(found("orders.at", " [filter: shop =, ...]"), None);
        assert_eq!(found("others.at", ""), None);
        let sort = &plan("orders.at", "").replace("Limit", "Unique");
        assert_eq!(WholeScan::all(sort), []);
    }

    #[test]
    fn what_is_read_for_each_row_of_another_input_is_read_repeatedly() {
        let tags = format!(" [filter: a =]{TABLE}");
        let subplan = line(0, "Seq Scan on small", 9, "")
            + &line(1, "Aggregate", 1, "")
            + &line(2, "Seq Scan on orders", 3, &tags);
        assert!(only(&subplan).repeated);
        let inner = |between: &str| {
            line(0, "Nested Loop Left Join", 9, "")
                + &line(1, "Seq Scan on small", 9, "")
                + &line(1, between, 3, "")
                + &line(2, "Seq Scan on orders", 3, &tags)
        };
        assert!(only(&inner("Subquery Scan")).repeated);
        assert!(!only(&inner("Materialize")).repeated);
    }

    fn condition(
        kind: ConditionKind,
        name: &str,
        state: &str,
        count: i64,
        bytes: i64,
    ) -> Condition {
        let database = Some("shop".to_owned());
        Condition {
            kind,
            name: name.into(),
            database,
            state: state.into(),
            count,
            bytes,
            seconds: None,
        }
    }

    fn catalog() -> Vec<Condition> {
        use ConditionKind::{Column, ForeignKey, HypotheticalIndex, Index, Table};
        let name = "public.orders";
        vec![
            condition(Table, name, "partition of public.all_orders, standby", 7, 8192 * 5170),
            condition(Column, "customer", name, 50_000, 0),
            condition(Column, "\"Shop\"", name, 40, 0),
            condition(Column, "created", name, 300_000, 0),
            condition(Column, "state", name, 1, 0),
            condition(Column, "gone", name, 5, 270_000),
            condition(Index, "public.i", "public.orders (customer, created)", 0, 0),
            condition(Index, "public.h", "public.orders (\"Shop\"), method hash", 0, 0),
            condition(Index, "public.p", "public.orders (\"Shop\"), partial", 0, 0),
            condition(Index, "public.b", "public.orders (created), invalid", 0, 0),
            condition(
                ForeignKey,
                "k",
                "public.orders (customer) references public.customers",
                0,
                0,
            ),
            condition(HypotheticalIndex, "", "public.orders (\"Shop\", customer)", 900, 9),
        ]
    }

    #[test]
    fn equality_comes_before_a_range_and_what_does_not_narrow_is_left_out() {
        let conditions = catalog();
        let table = KnownTable::find(&conditions, "shop", 7).unwrap();
        let choice = |filter: &str, rows: u64| filtered(filter, rows).choose(Some(&table), None);
        let columns = |filter: &str| choice(filter, 6).map(|choice| table.list(&choice).unwrap());
        assert_eq!(columns(": created >, \"Shop\" =").as_deref(), Some("\"Shop\", created"));
        assert_eq!(columns(": created >, \"Shop\" =, customer =").as_deref(), Some("customer"));
        assert_eq!(columns(": state =, \"Shop\" =").as_deref(), Some("\"Shop\""));
        assert_eq!(choice(": state =", 300_000), None);
        assert_eq!(choice(": gone is null", 270_000), None, "most rows");
        assert_eq!(choice(": created >", 290_000), None, "most rows");
        let unknown = choice(": created >", 100_000).unwrap();
        assert_eq!((unknown.finds, unknown.ordered), (None, 1), "the parameter is not known");
        assert_eq!(choice("", 6), None);
        let measured = filtered(": created >", 100_000).choose(Some(&table), Some(2.0)).unwrap();
        assert_eq!(measured.finds, Some(2.0));
        let two = filtered(": customer >, created <, ...", 6).choose(Some(&table), None).unwrap();
        assert_eq!((two.columns, two.finds), (vec!["created".to_owned()], None));
        assert_eq!(choice(": created >, ...", 290_000), None, "other conditions leave most rows");
        let many = filtered(": created >", 6).choose(Some(&table), Some(100_000.0));
        assert_eq!(many, None);
        // Of other conditions, nothing is known: the statistics of the columns tell.
        assert_eq!(choice(": customer =, ...", 1).unwrap().finds.map(f64::round), Some(6.0));
    }

    #[test]
    fn the_catalog_says_which_index_and_key_there_is() {
        let conditions = catalog();
        assert_eq!(KnownTable::find(&conditions, "other", 7), None);
        assert_eq!(KnownTable::find(&conditions, "shop", 8), None);
        let table = KnownTable::find(&conditions, "shop", 7).unwrap();
        assert_eq!(
            (table.parent, table.standby, table.blocks),
            (Some("public.all_orders"), true, 5170.0)
        );
        let index = |columns: &[&str], ordered: usize| {
            let columns = columns.iter().map(|column| (*column).to_owned()).collect();
            table
                .index(&IndexChoice { columns, ordered, finds: None })
                .map(|index| (index.name, index.valid))
        };
        assert_eq!(index(&["customer"], 0), Some(("public.i", true)));
        assert_eq!(index(&["customer", "created"], 1), Some(("public.i", true)));
        assert_eq!(index(&["created", "customer"], 0), Some(("public.i", true)));
        assert_eq!(index(&["created", "customer"], 1), None);
        assert_eq!(index(&["Shop"], 0), None, "a hash and a partial index do not serve");
        assert_eq!(index(&["created"], 1), Some(("public.b", false)));
        let key = table.foreign_key(&["customer".to_owned()]).unwrap();
        assert_eq!((key.name, key.references), ("k", "public.customers"));
        assert_eq!(table.foreign_key(&["created".to_owned()]), None);
        let mut others = catalog();
        others.push(condition(ConditionKind::Table, "public.customers", "", 9, 8192));
        let names = |id: u32| -> Vec<&str> {
            KnownTable::referring(&others, "shop", id).iter().map(|table| table.name).collect()
        };
        assert_eq!((names(9), names(7), names(1)), (vec!["public.orders"], vec![], vec![]));
        let delete = line(0, "Delete on customers", 0, " [table of 5 rows, OID 9]");
        assert_eq!(changed_tables(&(delete + &line(1, "Seq Scan on customers", 5, TABLE))), [9]);
        let choice = |columns: [&str; 2]| {
            let columns = columns.iter().map(|column| (*column).to_owned()).collect();
            IndexChoice { columns, ordered: 0, finds: None }
        };
        assert_eq!(table.costs(&choice(["Shop", "customer"])), Some((900.0, 9.0)));
        assert_eq!(table.costs(&choice(["customer", "Shop"])), None);
    }
}
