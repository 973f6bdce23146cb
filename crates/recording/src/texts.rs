// SPDX-License-Identifier: PostgreSQL
//! Which texts of statements and plans a recording keeps. The server replaces constants in most texts, but not table
//! names, and not in utility statements and plans.

use crate::batch::Batch;
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// What to record of the texts of statements and plans.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Texts {
    /// The whole texts.
    #[default]
    Keep,
    /// "sha256:" and the hash of each text, so that the same text is the same on every server.
    Hash,
    /// Nothing.
    Omit,
}

fn hash(text: &str) -> Arc<str> {
    let digest = Sha256::digest(text.as_bytes());
    let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{digits}").into()
}

impl Batch {
    /// Replace or remove the texts.
    pub fn reduce_texts(&mut self, texts: Texts) {
        match texts {
            Texts::Keep => return,
            Texts::Hash => {
                self.statement_texts.iter_mut().for_each(|row| row.text = hash(&row.text));
                self.plan_texts.iter_mut().for_each(|row| row.text = hash(&row.text));
            }
            Texts::Omit => {
                self.statement_texts.clear();
                // These rows also have figures.
                self.plan_texts.iter_mut().for_each(|row| row.text = "".into());
            }
        }
        self.slow_executions.clear();
        for row in &mut self.log {
            // Messages contain values, and there is no form of them without.
            row.message = "".into();
            (row.detail, row.context) = (None, None);
            row.query = row.query.take().filter(|_| texts == Texts::Hash).map(|text| hash(&text));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan_rows::PlanTextRow;
    use crate::rows::TextRow;

    #[test]
    fn texts_are_kept_hashed_or_left_out() {
        let mut batch = Batch::default();
        batch.statement_texts.push(TextRow { text: "select 1".into(), ..TextRow::default() });
        batch.plan_texts.push(PlanTextRow { text: "Seq Scan".into(), ..PlanTextRow::default() });
        let (message, query) = ("(1) exists".into(), Some("insert into t values (?)".into()));
        batch.log.push(crate::LogRow { message, query, ..Default::default() });
        batch.slow_executions.push(crate::SlowExecutionRow::default());
        let mut kept = batch.clone();
        kept.reduce_texts(Texts::Keep);
        assert_eq!(&*kept.statement_texts[0].text, "select 1");
        let mut hashed = batch.clone();
        hashed.reduce_texts(Texts::Hash);
        // As sha256sum prints it.
        assert_eq!(
            &*hashed.statement_texts[0].text,
            "sha256:822ae07d4783158bc1912bb623e5107cc9002d519e1143a9c200ed6ee18b6d0f"
        );
        assert_eq!(hashed.plan_texts[0].text.len(), 7 + 64);
        assert_eq!((kept.slow_executions.len(), hashed.slow_executions.len()), (1, 0));
        assert_eq!(kept.log[0].message.len(), 10);
        let hashed = &hashed.log[0];
        assert_eq!((&*hashed.message, hashed.query.as_ref().unwrap().len()), ("", 7 + 64));
        batch.reduce_texts(Texts::Omit);
        assert_eq!((&*batch.log[0].message, &batch.log[0].query), ("", &None));
        assert!(batch.slow_executions.is_empty());
        assert!(batch.statement_texts.is_empty() && batch.plan_texts[0].text.is_empty());
    }
}
