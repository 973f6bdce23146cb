// SPDX-License-Identifier: PostgreSQL
//! The last seconds of a run as one interval, computed from the readings at its beginning and end.
//!
//! Only a few beginnings are kept, so the interval is up to a fifth longer than requested.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use segment::kernel::KernelView;
use segment::{Frame, Interval, Segment, Snapshot, StatementsReading};
use view::statements;

/// Number of parts that the time is divided into.
const PARTS: f64 = 5.0;

/// Sums of the kernel's figures since the first reading, seconds.
#[derive(Debug, Clone, Copy, Default)]
struct Kernel {
    cpu_account: f64,
    on_cpu: f64,
    run_queue: f64,
}

/// A reading at which the interval may begin.
#[derive(Debug)]
struct Begin {
    snapshot: Arc<Snapshot>,
    statements: Option<Arc<StatementsReading>>,
    kernel: Kernel,
}

/// The readings from which the interval of the last seconds is computed.
#[derive(Debug)]
pub(crate) struct Recent {
    length: f64,
    begins: VecDeque<Begin>,
    kernel: Kernel,
}

impl Recent {
    /// An interval of this length, which begins with this reading.
    pub(crate) fn start(
        length: Duration,
        snapshot: Arc<Snapshot>,
        statements: Option<Arc<StatementsReading>>,
    ) -> Recent {
        let begin = Begin { snapshot, statements, kernel: Kernel::default() };
        Recent {
            length: length.as_secs_f64(),
            begins: VecDeque::from([begin]),
            kernel: Kernel::default(),
        }
    }

    /// The last seconds up to this reading; `kernel` is the kernel's view since the previous one.
    pub(crate) fn next(
        &mut self,
        segment: &Segment,
        snapshot: &Arc<Snapshot>,
        statements: Option<&Arc<StatementsReading>>,
        kernel: &KernelView,
    ) -> view::Recent {
        self.kernel.cpu_account += kernel.cpu_account_seconds;
        self.kernel.on_cpu += kernel.on_cpu_seconds;
        self.kernel.run_queue += kernel.run_queue_seconds;
        let age = |begin: &Begin| {
            snapshot.clock.seconds(snapshot.tick.saturating_sub(begin.snapshot.tick))
        };
        while self.begins.get(1).is_some_and(|second| age(second) >= self.length) {
            self.begins.pop_front();
        }
        // Statements may have been requested later; all figures must cover the same time.
        let has_them = |begin: &&Begin| begin.statements.is_some();
        let begin = match statements {
            Some(_) => self.begins.iter().find(has_them).or(self.begins.front()),
            None => self.begins.front(),
        };
        let earlier = begin.map(|begin| &*begin.snapshot);
        let frame = Frame::between(segment, earlier, snapshot);
        let busy = frame.busy_seconds();
        let mut interval = Interval::from(frame);
        interval.kernel =
            self.kernel_since(begin.map_or(self.kernel, |begin| begin.kernel), kernel);
        interval.kernel.unexplained_seconds = kernel.unexplained_share * busy;
        let before = begin.and_then(|begin| begin.statements.as_ref());
        let found = statements
            .zip(before)
            .map(|(now, before)| statements::StatementsTable::between(Some(before), now));
        if self.begins.back().is_none_or(|last| age(last) >= self.length / PARTS) {
            self.begins.push_back(Begin {
                snapshot: snapshot.clone(),
                statements: statements.cloned(),
                kernel: self.kernel,
            });
        }
        view::Recent { interval, statements: found }
    }

    /// The kernel's view since these sums. Shares and samples always cover the time since the watch began.
    fn kernel_since(&self, before: Kernel, last: &KernelView) -> KernelView {
        let (now, mut view) = (self.kernel, last.clone());
        view.cpu_account_seconds = now.cpu_account - before.cpu_account;
        view.on_cpu_seconds = now.on_cpu - before.on_cpu;
        view.run_queue_seconds = now.run_queue - before.run_queue;
        let kernel = view.on_cpu_seconds + view.run_queue_seconds;
        view.runnable_inside_waits_seconds = (kernel - view.cpu_account_seconds).max(0.0);
        view
    }
}
