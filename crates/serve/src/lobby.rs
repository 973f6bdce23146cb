// SPDX-License-Identifier: PostgreSQL
//! Decides who may keep a connection: clients whose request has passed the gate. There are few places for others,
//! and for a short time: a newcomer takes the place of the one that has waited longest, so connections without a
//! request keep nobody out.

use std::collections::VecDeque;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{oneshot, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Maximum number of connections whose client has passed the gate.
pub const ADMITTED: usize = 64;
/// Maximum number of other connections.
pub const WAITING: usize = 32;
/// How long a connection may last until a request on it passes the gate.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// The connections.
#[derive(Debug)]
pub struct Lobby {
    admitted: Arc<Semaphore>,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    next: u64,
    /// By age; a message closes a connection.
    all: VecDeque<(u64, oneshot::Sender<()>)>,
}

/// The place of one connection.
#[derive(Debug)]
pub struct Guest {
    lobby: Arc<Lobby>,
    number: u64,
    permit: Mutex<Option<OwnedSemaphorePermit>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Lobby {
    /// An empty lobby.
    pub fn new() -> Arc<Lobby> {
        let admitted = Arc::new(Semaphore::new(ADMITTED));
        Arc::new(Lobby { admitted, waiting: Mutex::default() })
    }

    /// Adds a new connection. The second part is for [`Guest::sent_away`].
    pub fn enter(self: &Arc<Self>) -> (Guest, oneshot::Receiver<()>) {
        let (leave, left) = oneshot::channel();
        let mut waiting = lock(&self.waiting);
        let number = waiting.next;
        waiting.next += 1;
        waiting.all.push_back((number, leave));
        if waiting.all.len() > WAITING {
            // Fails if that connection has ended.
            let _ = waiting.all.pop_front().map(|(_, leave)| leave.send(()));
        }
        (Guest { lobby: self.clone(), number, permit: Mutex::default() }, left)
    }

    /// Waits until all admitted connections have ended.
    pub async fn emptied(&self) {
        let all = u32::try_from(ADMITTED).unwrap_or(u32::MAX);
        // Fails if the semaphore was closed, which never happens.
        drop(self.admitted.acquire_many(all).await);
    }
}

impl Guest {
    /// A request on this connection has passed the gate, so it may stay. Returns false if too many have been
    /// admitted.
    pub fn admit(&self) -> bool {
        let mut permit = lock(&self.permit);
        if permit.is_none() {
            *permit = self.lobby.admitted.clone().try_acquire_owned().ok();
            if permit.is_some() {
                self.leave();
            }
        }
        permit.is_some()
    }

    /// Waits until the connection has to be closed, at the latest after this time; forever once it is admitted.
    pub async fn sent_away(left: oneshot::Receiver<()>, patience: Duration) {
        // An error means that its place was given up because it was admitted.
        if let Ok(Err(_)) = timeout(patience, left).await {
            pending().await
        }
    }

    fn leave(&self) {
        lock(&self.lobby.waiting).all.retain(|(number, _)| *number != self.number);
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;

    fn run<T>(future: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        runtime.unwrap().block_on(future)
    }

    #[test]
    fn a_newcomer_replaces_the_one_that_has_waited_longest() {
        let lobby = Lobby::new();
        let mut guests: Vec<_> = (0..WAITING).map(|_| lobby.enter()).collect();
        assert!(guests[1].0.admit() && guests[1].0.admit());
        let _spare = lobby.enter();
        assert!(guests.iter_mut().all(|(_, left)| left.try_recv() != Ok(())));
        let _one_more = lobby.enter();
        let sent: Vec<bool> =
            guests.iter_mut().map(|(_, left)| left.try_recv() == Ok(())).collect();
        assert!(sent[0] && sent[1..].iter().all(|sent| !sent));
    }

    #[test]
    fn one_that_says_nothing_goes_and_one_that_is_admitted_stays() {
        run(async {
            let lobby = Lobby::new();
            let (_silent, left) = lobby.enter();
            Guest::sent_away(left, Duration::ZERO).await;
            let (guest, left) = lobby.enter();
            assert!(guest.admit());
            tokio::select! {
                biased;
                () = Guest::sent_away(left, Duration::ZERO) => panic!("it was sent away"),
                () = std::future::ready(()) => {}
            }
        });
    }

    #[test]
    fn those_who_are_admitted_are_limited_too() {
        run(async {
            let lobby = Lobby::new();
            let mut guests: Vec<_> = (0..ADMITTED).map(|_| lobby.enter().0).collect();
            assert!(guests.iter().all(Guest::admit));
            let late = lobby.enter().0;
            assert!(!late.admit());
            guests.pop();
            assert!(late.admit());
            drop((guests, late));
            lobby.emptied().await;
        });
    }
}
