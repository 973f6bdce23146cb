// SPDX-License-Identifier: PostgreSQL
//! What is marked in all charts: checkpoints, what was slow, and what the recorder noted.

use segment::EventKind;

use super::material::Material;
use super::tables::checkpoints;
use view::document::Mark;
use view::units::{duration, whole};

/// Slow operations that are marked, the longest of them: more would hide the charts.
const SLOW: usize = 200;

/// All of them, in order of time.
pub fn marks(material: &Material) -> Vec<Mark> {
    let mut marks: Vec<Mark> = checkpoints(&material.events, material.from)
        .into_iter()
        .filter_map(|it| {
            let ended = it.ended?;
            Some(Mark {
                time: ended - it.seconds,
                until: Some(ended),
                kind: "checkpoint".to_string(),
                text: format!(
                    "checkpoint ({}), {}: {} buffers, sync {}",
                    it.reason,
                    duration(it.seconds),
                    whole(it.buffers),
                    duration(it.sync_seconds)
                ),
            })
        })
        .collect();
    let slow = material.events.iter().filter(|row| row.kind == EventKind::Slow);
    let mut slow: Vec<(f64, Mark)> = slow
        .filter_map(|row| {
            let time = row.time.filter(|time| *time >= material.from)?;
            let kind = "slow".to_string();
            let text = row.text.clone();
            Some((length(&row.text).unwrap_or(0.0), Mark { time, until: None, kind, text }))
        })
        .collect();
    slow.sort_by(|a, b| b.0.total_cmp(&a.0));
    marks.extend(slow.into_iter().take(SLOW).map(|(_, mark)| mark));
    marks.extend(material.marks.iter().cloned());
    marks.sort_by(|a, b| a.time.total_cmp(&b.time));
    marks
}

/// How long a slow operation took, by its text: "sync: 7.020 s: pg_xact/000C".
pub fn length(text: &str) -> Option<f64> {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.windows(2).find_map(|pair| {
        let seconds = pair[0].parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0)?;
        match pair[1].trim_end_matches([',', ':', ';']) {
            "s" => Some(seconds),
            "ms" => Some(seconds * 1e-3),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_what_was_slow_is_in_its_text() {
        assert_eq!(length("sync: 7.020 s: pg_xact/000C"), Some(7.02));
        assert_eq!(length("Lock:transactionid: 1.500 s"), Some(1.5));
        assert_eq!(length("fsync: 7.02 s, 1 write of 8 kB since its last: x"), Some(7.02));
        assert_eq!(length("nothing to be found in 3 words"), None);
    }
}
