// SPDX-License-Identifier: PostgreSQL
//! Replays a recording: one interval after another at a given speed, or any interval on request.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::screen::{Ask, Screen};
use super::source::Source;
use crate::views;

mod frames;
mod machine;
mod recording_source;

pub use frames::{Frames, Scene};
pub use recording_source::RecordingSource;

/// Number of intervals to read at once.
const AHEAD: usize = 120;
/// Number of intervals before the requested one to read for the histories.
const BEFORE: usize = 60;
/// Shortest time between refreshes; at higher speeds, a refresh skips intervals.
const SHORTEST: Duration = Duration::from_millis(100);

/// Replays a recording. The screen holds the state: speed, position and pause.
#[derive(Debug)]
pub struct Player<F> {
    recording: F,
    /// The intervals that were read ahead.
    ahead: VecDeque<Scene>,
    /// When the last one was shown.
    shown: Instant,
    /// Length of an interval.
    length: Duration,
    /// Number of problems already reported.
    reported: usize,
    /// The interval that was last filled.
    filled: Option<usize>,
}

impl<F: Frames> Player<F> {
    /// Starts with the first interval.
    pub fn new(recording: F, screen: &mut Screen) -> Player<F> {
        let (shown, length) = (Instant::now(), screen.length);
        let (ahead, reported, filled) = (VecDeque::new(), 0, None);
        let mut player = Player { recording, ahead, shown, length, reported, filled };
        player.go(0, screen);
        player
    }

    /// Shows the interval with this number, and stores some before it.
    fn go(&mut self, index: usize, screen: &mut Screen) {
        let index = index.min(self.recording.len().saturating_sub(1));
        self.ahead.clear();
        screen.history.clear();
        let Some(play) = &mut screen.play else { return };
        (play.next, play.of) = (index.saturating_sub(BEFORE), self.recording.len());
        while screen.play.as_ref().is_some_and(|play| play.next <= index) {
            if !self.next(screen) {
                return;
            }
        }
    }

    /// Reads ahead if needed. Returns false at the end.
    fn read(&mut self, next: usize) -> Result<bool, String> {
        let mut next = next;
        while self.ahead.is_empty() && next < self.recording.len() {
            let end = (next + AHEAD).min(self.recording.len());
            self.ahead.extend(self.recording.read(next..end)?);
            next = end;
        }
        Ok(!self.ahead.is_empty())
    }

    /// Shows the next interval. Returns false at the end.
    fn next(&mut self, screen: &mut Screen) -> bool {
        self.shown = Instant::now();
        let Some(next) = screen.play.as_ref().map(|play| play.next) else { return false };
        let stop = match self.read(next) {
            Ok(true) => None,
            Ok(false) => Some("end of the replay".to_string()),
            Err(problem) => Some(problem),
        };
        let problems = self.recording.problems();
        if problems.len() > self.reported {
            self.reported = problems.len();
            screen.notice = problems.last().cloned();
        }
        let (Some(play), Some(scene)) = (&mut screen.play, self.ahead.pop_front()) else {
            screen.play.iter_mut().for_each(|play| (play.on, play.next) = (false, play.of));
            screen.notice = stop.or(screen.notice.take());
            return false;
        };
        let index = scene.reading.recorded.as_ref().map_or(next, |recorded| recorded.index);
        play.next = index + 1;
        let missing =
            (index > next).then(|| format!("{} intervals could not be read", index - next));
        missing.into_iter().chain(scene.gap).for_each(|reason| screen.history.gap(reason));
        screen.history.live();
        screen.history.push(scene.reading);
        true
    }

    /// Number of the first interval that ended at this time or later.
    fn index_at(&self, time: f64) -> usize {
        let (mut low, mut high) = (0, self.recording.len());
        while low < high {
            let middle = (low + high) / 2;
            match self.recording.end(middle) < time {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }

    /// How long the current interval stays on the screen.
    fn pace(&self, screen: &Screen) -> Option<Duration> {
        let play = screen.play.as_ref().filter(|play| play.on)?;
        let index = play.next.saturating_sub(1).min(self.recording.len().saturating_sub(1));
        Duration::try_from_secs_f64(self.recording.seconds(index) / play.speed).ok()
    }
}

impl<F: Frames> Source for Player<F> {
    fn due(&self, screen: &Screen) -> Option<Instant> {
        Some(self.shown + self.pace(screen)?.max(SHORTEST))
    }

    fn turn(&mut self, screen: &mut Screen) {
        let mut left = SHORTEST;
        while let Some(pace) = self.pace(screen) {
            if screen.history.is_past() {
                screen.history.step(1);
                self.shown = Instant::now();
            } else if !self.next(screen) {
                return;
            }
            left = left.saturating_sub(pace.max(Duration::from_micros(1)));
            if left.is_zero() {
                return;
            }
        }
    }

    fn answer(&mut self, ask: Ask, screen: &mut Screen) {
        let (Some(index), Some(play)) = (screen.shown_index(), &screen.play) else { return };
        let next = play.next;
        match ask {
            Ask::Further(by) if by < 0 && index == 0 => {
                screen.notice = Some("start of the replay".into());
            }
            Ask::Further(by) if by > 0 && next >= self.recording.len() => {
                screen.notice = Some("end of the replay".into());
            }
            Ask::Further(by) => {
                self.go((index as i64).saturating_add(by).max(0) as usize, screen);
            }
            Ask::Seek(time) => {
                let outside = self.recording.len() == 0
                    || time < self.recording.end(0) - self.recording.seconds(0)
                    || time.is_finite() && time > self.recording.end(self.recording.len() - 1);
                self.go(self.index_at(time), screen);
                if outside {
                    screen.notice = Some("this time is outside the replay".into());
                }
            }
            _ => {}
        }
    }

    fn wanted(&mut self, screen: &mut Screen) {
        if self.length != screen.length {
            self.length = screen.length;
            self.recording.regroup(Some(self.length));
            let time = screen.reading().map_or(0.0, |reading| reading.interval.time);
            self.go(self.index_at(time), screen);
        }
        let (view, session) = (screen.view(), screen.session);
        let index = screen.shown_index();
        if self.filled != index {
            screen.history.forget_recent();
            self.filled = index;
        }
        if let Some(reading) = screen.history.shown_mut() {
            let mut filled = self.recording.fill(reading, view);
            if session.is_some() || views::of_blocking(view) {
                filled = filled.and_then(|()| self.recording.fill_sessions(reading, session));
            }
            if let Err(problem) = filled {
                screen.notice = Some(problem);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;
    use crate::saved::Saved;
    use crate::screen::tests::{args, drawn, press};
    use crate::screen::Play;
    use crate::View;
    use view::sample;
    use view::session::SessionId;
    use view::{Reading, Recorded};

    /// A recording of this many seconds, all like the sample, with a gap before the fifth.
    struct Seconds(usize, Vec<Range<usize>>, segment::Interval);

    impl Frames for Seconds {
        fn len(&self) -> usize {
            self.0
        }

        fn end(&self, index: usize) -> f64 {
            self.2.time + index as f64 + if index >= 5 { 100.0 } else { 0.0 }
        }

        fn seconds(&self, _index: usize) -> f64 {
            1.0
        }

        fn read(&mut self, intervals: Range<usize>) -> Result<Vec<Scene>, String> {
            self.1.push(intervals.clone());
            if intervals.start >= 900 {
                return Err("file 7 is damaged".to_string());
            }
            let scene = |index| {
                let mut interval = self.2.clone();
                (interval.time, interval.commands_handled) = (self.end(index), index as u64);
                let recorded = Some(Recorded { index, spread_from_seconds: None });
                let reading = Box::new(Reading { recorded, ..Reading::new(interval) });
                let gap = (index == 5).then(|| "the server was stopped".to_string());
                Scene { reading, gap }
            };
            // Three intervals are unreadable.
            Ok(intervals.filter(|index| !(700..703).contains(index)).map(scene).collect())
        }

        fn problems(&self) -> Vec<String> {
            Vec::new()
        }

        fn regroup(&mut self, length: Option<Duration>) {
            self.0 = 800 / length.unwrap().as_secs() as usize;
        }

        fn fill(&mut self, reading: &mut Reading, view: View) -> Result<(), String> {
            if view == View::Statements {
                (reading.statements, reading.asked) = (Some(sample::statements()), true);
            }
            Ok(())
        }

        fn fill_sessions(&mut self, _: &mut Reading, _: Option<SessionId>) -> Result<(), String> {
            Ok(())
        }
    }

    fn player(n: usize) -> (Player<Seconds>, Screen) {
        let mut screen = Screen::new(&args(), &Saved::default(), false);
        (screen.zone, screen.ascii) = (jiff::tz::TimeZone::UTC, false);
        screen.play = Some(Play::new("dir".to_string(), n, 1.0));
        (Player::new(Seconds(n, Vec::new(), sample::interval()), &mut screen), screen)
    }

    /// Presses a key and does what the screen then requests.
    fn act(player: &mut Player<Seconds>, screen: &mut Screen, keys: &str) {
        for key in keys.chars() {
            if let Some(ask) = press(screen, &key.to_string()) {
                player.answer(ask, screen);
            }
            player.wanted(screen);
        }
    }

    fn shown(screen: &Screen) -> u64 {
        screen.reading().unwrap().interval.commands_handled
    }

    #[test]
    fn it_plays_to_the_end_and_stops() {
        let (mut player, mut screen) = player(300);
        assert_eq!(shown(&screen), 0);
        for n in 1..300 {
            assert!(player.due(&screen).is_some());
            player.turn(&mut screen);
            assert_eq!(shown(&screen), n);
        }
        player.turn(&mut screen);
        assert_eq!(player.due(&screen), None);
        assert!(drawn(&mut screen, 120, 30).contains("end of the replay"));
        assert_eq!(player.recording.1.len(), 3, "read by the hundred: {:?}", player.recording.1);
    }

    #[test]
    fn speed_is_doubled_and_halved_and_shown() {
        let (mut player, mut screen) = player(300);
        let head = |screen: &mut Screen| drawn(screen, 120, 30).lines().next().unwrap().to_string();
        assert!(head(&mut screen)
            .starts_with("REPLAY x1: 2023-11-14 22:13:20 UTC, interval 1 of 300, dir"));
        act(&mut player, &mut screen, "++++++");
        assert!(head(&mut screen).contains("x64"), "{}", head(&mut screen));
        player.turn(&mut screen);
        assert!((5..9).contains(&shown(&screen)), "several at once: {}", shown(&screen));
        act(&mut player, &mut screen, "-------");
        assert!(head(&mut screen).contains("x0.5"), "{}", head(&mut screen));
        assert!(player.due(&screen).unwrap() > Instant::now() + Duration::from_millis(1500));
        act(&mut player, &mut screen, "p");
        assert_eq!(player.due(&screen), None);
        assert!(head(&mut screen).contains("stopped"), "{}", head(&mut screen));
        act(&mut player, &mut screen, &"-".repeat(99));
        act(&mut player, &mut screen, &"+".repeat(99));
        assert!(head(&mut screen).contains("x1,024"), "{}", head(&mut screen));
    }

    #[test]
    fn the_user_can_go_anywhere_in_it() {
        let (mut player, mut screen) = player(800);
        act(&mut player, &mut screen, "p]]→");
        assert_eq!(shown(&screen), 21);
        act(&mut player, &mut screen, "←←");
        assert_eq!(shown(&screen), 19);
        act(&mut player, &mut screen, "[[[");
        assert_eq!(shown(&screen), 0);
        assert!(drawn(&mut screen, 120, 30).contains("start of the replay"));
        act(&mut player, &mut screen, "t22:25:00\n");
        assert_eq!(shown(&screen), 600);
        let seen = drawn(&mut screen, 120, 30);
        assert!(seen.contains("2023-11-14 22:25:00 UTC, interval 601 of 800"), "{seen}");
        act(&mut player, &mut screen, &"[".repeat(7));
        assert_eq!(shown(&screen), 530, "further back than what is kept");
        act(&mut player, &mut screen, "p");
        player.turn(&mut screen);
        assert_eq!(shown(&screen), 531);
        act(&mut player, &mut screen, "l");
        assert_eq!(shown(&screen), 799);
        act(&mut player, &mut screen, "→");
        assert!(screen.notice.as_ref().unwrap().contains("end of the replay"));
        act(&mut player, &mut screen, "t2020-01-01 00:00\n");
        assert_eq!(shown(&screen), 0);
        assert!(screen.notice.as_ref().unwrap().contains("outside the replay"));
    }

    #[test]
    fn playing_resumes_from_the_interval_shown() {
        let (mut player, mut screen) = player(100);
        act(&mut player, &mut screen, "p]]]");
        assert_eq!(shown(&screen), 30);
        act(&mut player, &mut screen, "[p");
        player.turn(&mut screen);
        player.turn(&mut screen);
        assert_eq!(shown(&screen), 22);
    }

    #[test]
    fn gaps_statements_and_damage_are_shown() {
        let (mut player, mut screen) = player(1000);
        act(&mut player, &mut screen, "8");
        assert!(drawn(&mut screen, 120, 30).contains("UPDATE accounts"));
        act(&mut player, &mut screen, "1p]");
        act(&mut player, &mut screen, "←←←←←");
        assert_eq!(shown(&screen), 5);
        assert!(drawn(&mut screen, 120, 30)
            .contains("gap before this interval: the server was stopped"));
        act(&mut player, &mut screen, "t22:26:43\n");
        assert_eq!(shown(&screen), 703);
        act(&mut player, &mut screen, "p");
        assert!(drawn(&mut screen, 120, 30)
            .contains("gap before this interval: 3 intervals could not be read"));
        assert_eq!(screen.shown_index(), Some(703));
        act(&mut player, &mut screen, "l");
        assert!(drawn(&mut screen, 120, 30).contains("file 7 is damaged"));
        let (mut nothing, mut screen) = self::player(0);
        act(&mut nothing, &mut screen, "pl→←");
        nothing.turn(&mut screen);
        assert_eq!(nothing.due(&screen), None);
    }
}
