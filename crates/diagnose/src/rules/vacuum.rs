// SPDX-License-Identifier: PostgreSQL
//! Vacuum does not remove dead rows.

use view::units::{capitalise, duration, percent, whole};
use view::vacuum::{Holder, Table, Vacuum};

use super::names::literal;
use crate::advice::Advice;
use crate::case::Case;
use crate::diagnosis::{Confidence, Diagnosis, Kind, Rule};

/// Vacuum has come to a table if that was this long ago, or since the snapshot was taken, seconds.
const LATELY: f64 = 600.0;

/// A table has many dead rows: vacuum could not remove them, is off, or does not come.
pub fn behind(case: &Case<'_>) -> Vec<Diagnosis> {
    let Some(vacuum) = case.vacuum else { return Vec::new() };
    let Some(worst) = vacuum.tables.first() else { return Vec::new() };
    let found = held_back(vacuum, worst).or_else(|| off(worst)).or_else(|| late(worst));
    let others = vacuum.tables.iter().skip(1).take(3).map(of_table).collect::<Vec<_>>();
    found
        .into_iter()
        .map(|mut finding| {
            finding.evidence.push(match worst.vacuumed_seconds_ago {
                Some(ago) => format!("The table was last vacuumed {} ago.", duration(ago)),
                None => {
                    "The table has not been vacuumed since its statistics were reset.".to_owned()
                }
            });
            if !others.is_empty() {
                finding.evidence.push(format!("Others: {}.", others.join("; ")));
            }
            finding
        })
        .collect()
}

/// "120,000 dead rows in table t of database d (55 % of its rows)".
fn of_table(table: &Table) -> String {
    let rows = (table.live_rows + table.dead_rows).max(1) as f64;
    format!(
        "{} dead rows in table {} of database {} ({} % of its rows)",
        whole(table.dead_rows as u64),
        table.name,
        table.database,
        percent(table.dead_rows as f64 / rows)
    )
}

fn diagnosis(
    text: String,
    evidence: Vec<String>,
    advice: Advice,
    confidence: Confidence,
) -> Diagnosis {
    Diagnosis {
        rule: Rule::Vacuum,
        kind: Kind::Problem,
        text,
        seconds: 0.0,
        share: None,
        evidence,
        advice,
        confidence,
        section: "relations",
        consequence_of: None,
    }
}

/// Vacuum has come, and left them: somebody could still see them.
fn held_back(vacuum: &Vacuum, table: &Table) -> Option<Diagnosis> {
    let ago = table.vacuumed_seconds_ago?;
    let holds = |holder: &&Holder| {
        let here = holder.database.as_ref().is_none_or(|database| *database == table.database);
        here && holder.transactions > 0 && holder.seconds.is_none_or(|seconds| seconds >= ago)
    };
    let holder = vacuum.holders.iter().find(holds)?;
    let holds = match holder.seconds {
        Some(seconds) => format!("has held a snapshot for {}", duration(seconds)),
        None => "keeps them".to_owned(),
    };
    let state = match holder.state.as_str() {
        "" => String::new(),
        state => format!(", {state}"),
    };
    Some(diagnosis(
        format!(
            "{} {holds}{state}, so vacuum could not remove {}.",
            capitalise(&holder.name),
            of_table(table)
        ),
        vec![match holder.transactions as u64 {
            1 => "1 transaction has begun since the oldest one that it can see.".to_owned(),
            n => format!(
                "{} transactions have begun since the oldest one that it can see.",
                whole(n)
            ),
        }],
        end_of(holder),
        Confidence::Certain,
    ))
}

/// How to end what holds the rows back, by its name (`live::vacuum` makes it).
pub(super) fn end_of(holder: &Holder) -> Advice {
    let later = "To prevent this, set idle_in_transaction_session_timeout (to '5min', say), and keep reports short.";
    let name = &holder.name;
    if let Some(rest) = name.strip_prefix("session ") {
        let pid = rest.split(' ').next().unwrap_or_default();
        let terminate = format!("SELECT pg_terminate_backend({pid})");
        return Advice::from("If its client has abandoned it, end it: ")
            .run(terminate)
            .say(&format!(". {later}"));
    }
    if let Some(gid) = name.strip_prefix("prepared transaction ") {
        return Advice::from("Ask its transaction manager for the outcome, then ")
            .run(format!("COMMIT PREPARED {gid}"))
            .say(", or ")
            .run(format!("ROLLBACK PREPARED {gid}"))
            .say(".");
    }
    match name.strip_prefix("replication slot ") {
        Some(slot) => Advice::from("If nobody needs the slot: ")
            .run(format!("SELECT pg_drop_replication_slot({})", literal(slot.trim_matches('"'))))
            .say("."),
        None if name.starts_with("standby ") => {
            "A query or an open transaction on that standby still needs them: end it there, or set \
             hot_standby_feedback = off on the standby, which then cancels such queries."
                .into()
        }
        None => format!("End it. {later}").into(),
    }
}

fn off(table: &Table) -> Option<Diagnosis> {
    table.autovacuum_off.then(|| {
        diagnosis(
            format!("Autovacuum is off, and there are {}.", of_table(table)),
            Vec::new(),
            Advice::default()
                .run(format!("VACUUM {}", table.name))
                .say("; then ")
                .run(format!("ALTER TABLE {} RESET (autovacuum_enabled)", table.name))
                .say(", or ")
                .set("autovacuum", "on")
                .say(&format!(" (in database {}).", table.database)),
            Confidence::Certain,
        )
    })
}

fn late(table: &Table) -> Option<Diagnosis> {
    let missed = table.vacuumed_seconds_ago.is_none_or(|ago| ago > LATELY);
    let many = table.dead_rows as f64 >= 5.0 * table.threshold;
    (missed && many).then(|| {
        diagnosis(
            format!("Autovacuum does not keep up: {}.", of_table(table)),
            vec![format!(
                "It should start at {} dead rows.",
                whole(table.threshold.max(0.0) as u64)
            )],
            "Look at pg_stat_progress_vacuum: are all autovacuum_max_workers busy, or slowed down by \
             autovacuum_vacuum_cost_limit? Does a lock keep them away?"
                .into(),
            Confidence::Likely,
        )
    })
}
