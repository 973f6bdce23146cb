// SPDX-License-Identifier: PostgreSQL
//! Workloads for pgbench.

use std::path::PathBuf;

/// A workload for pgbench.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Workload {
    /// pgbench's built-in select-only script
    Select,
    /// pgbench's built-in TPC-B-like script
    TpcB,
    /// Only assigns transaction IDs, which contend for one lock
    Txid,
    /// 5,000 distinct statements in random order, all of which fit into the table
    Distinct,
    /// 10,000 distinct statements, of which 5,000 fit into the table
    Evicting,
    /// Select-only with almost no shared buffers, so that pages come from the kernel's cache
    Misses,
    /// A pgbench script of the user
    File(PathBuf),
}

impl Workload {
    /// Its name on the command line.
    pub fn name(&self) -> String {
        match self {
            Self::Select => "select".into(),
            Self::TpcB => "tpcb".into(),
            Self::Txid => "txid".into(),
            Self::Distinct => "distinct".into(),
            Self::Evicting => "evicting".into(),
            Self::Misses => "misses".into(),
            Self::File(path) => path.display().to_string(),
        }
    }

    /// The pg_tally.max_statements that this workload requires, if any.
    pub fn max_statements(&self) -> Option<u32> {
        match self {
            Self::Distinct => Some(6_000),
            Self::Evicting => Some(5_000),
            _ => None,
        }
    }
}

impl std::str::FromStr for Workload {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "select" => Ok(Self::Select),
            "tpcb" => Ok(Self::TpcB),
            "txid" => Ok(Self::Txid),
            "distinct" => Ok(Self::Distinct),
            "evicting" => Ok(Self::Evicting),
            "misses" => Ok(Self::Misses),
            file if std::path::Path::new(file).is_file() => Ok(Self::File(file.into())),
            _ => Err("neither a workload (select, tpcb, txid, distinct, evicting, misses) nor a readable file"
                .into()),
        }
    }
}

impl From<&Workload> for scratch::Load {
    fn from(workload: &Workload) -> Self {
        match workload {
            Workload::Select | Workload::Misses => Self::Select,
            Workload::TpcB => Self::TpcB,
            Workload::Txid => Self::Script("select txid_current();\n".into()),
            Workload::Distinct => Self::Distinct { hundreds: 50 },
            Workload::Evicting => Self::Distinct { hundreds: 100 },
            Workload::File(path) => Self::File(path.clone()),
        }
    }
}
