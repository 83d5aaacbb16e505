//! Where names have led so far, so that a change is noticed. Pure: time comes in as an argument.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// A name that leads to an address again which it has left no longer ago than this takes turns between servers, as the reader
/// endpoints of clusters do. It has not moved: their connections all stay.
const TURN: Duration = Duration::from_secs(60);
/// How long a name that nobody asks for is remembered.
const KEPT: Duration = Duration::from_secs(3600);

/// A name, and addresses that it does not lead to any more.
pub type Moved = (String, Vec<IpAddr>);

struct Course {
    addresses: Vec<IpAddr>,
    /// Addresses before these, and when they were left.
    left: Vec<(IpAddr, Instant)>,
    noted: Instant,
}

/// What each name led to last, by normalised name.
#[derive(Default)]
pub struct Courses {
    courses: HashMap<String, Course>,
    moved: Vec<Moved>,
}

impl Courses {
    /// Notes what a source has answered.
    pub fn note(&mut self, name: &str, addresses: &[IpAddr], now: Instant) {
        let Some(course) = self.courses.get_mut(name) else {
            let course = Course { addresses: addresses.to_vec(), left: Vec::new(), noted: now };
            self.courses.insert(name.to_owned(), course);
            return;
        };
        course.noted = now;
        if course.addresses == addresses {
            return;
        }
        course.left.retain(|(_, at)| now < *at + TURN);
        let takes_turns = course.left.iter().any(|(address, _)| addresses.contains(address));
        course.left.extend(course.addresses.iter().map(|address| (*address, now)));
        course.left.retain(|(address, _)| !addresses.contains(address));
        if !takes_turns && !course.left.is_empty() {
            self.moved.push((name.to_owned(), course.left.iter().map(|(address, _)| *address).collect()));
        }
        course.addresses = addresses.to_vec();
    }
    /// Whether a name leads to an address, as far as is known.
    pub fn leads_to(&self, name: &str, address: IpAddr) -> bool {
        self.courses.get(name).is_none_or(|course| course.addresses.contains(&address))
    }
    /// What has moved since this was asked last, and not back.
    pub fn take_moved(&mut self) -> Vec<Moved> {
        let mut moved = std::mem::take(&mut self.moved);
        for (name, gone) in &mut moved {
            if let Some(course) = self.courses.get(name) {
                gone.retain(|address| !course.addresses.contains(address));
            }
        }
        moved
    }
    /// Forgets names that nobody has asked for in a long time.
    pub fn forget_unused(&mut self, now: Instant) {
        self.courses.retain(|_, course| now < course.noted + KEPT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn ips(last: &[u8]) -> Vec<IpAddr> {
        last.iter().map(|last| IpAddr::from([10, 0, 0, *last])).collect()
    }

    /// What has moved after answers that came a second apart.
    fn moved(answers: &[&[u8]]) -> Vec<Vec<IpAddr>> {
        let (mut courses, now) = (Courses::default(), Instant::now());
        for (at, answer) in answers.iter().enumerate() {
            courses.note("a", &ips(answer), now + SECOND * u32::try_from(at).unwrap());
        }
        courses.take_moved().into_iter().map(|(_, gone)| gone).collect()
    }

    #[test]
    fn an_address_that_is_missing_in_the_next_answer_is_left() {
        assert!(moved(&[&[1]]).is_empty());
        assert!(moved(&[&[1, 2], &[2, 1], &[1, 2, 3]]).is_empty(), "none is missing");
        assert_eq!(moved(&[&[1], &[2]]), [ips(&[1])]);
        assert_eq!(moved(&[&[1, 2], &[2, 3]]), [ips(&[1])]);
    }

    #[test]
    fn addresses_that_take_turns_are_not_left_for_good() {
        assert_eq!(moved(&[&[1], &[2], &[1], &[2], &[1]]), [Vec::<IpAddr>::new()]);
        assert_eq!(moved(&[&[1], &[2], &[1], &[3]]), [ips(&[1]), ips(&[2, 1])]);
    }

    #[test]
    fn what_comes_back_after_a_while_has_moved_back() {
        let (mut courses, now) = (Courses::default(), Instant::now());
        for (address, after) in [(1, 0), (2, 10), (1, 70)] {
            courses.note("a", &ips(&[address]), now + SECOND * after);
        }
        assert_eq!(courses.take_moved(), [("a".into(), vec![]), ("a".into(), ips(&[2]))]);
        assert_eq!(courses.take_moved(), []);
    }

    #[test]
    fn names_that_nobody_asks_for_are_forgotten() {
        let (mut courses, now) = (Courses::default(), Instant::now());
        courses.note("a", &ips(&[1]), now);
        courses.note("b", &ips(&[1]), now + KEPT / 2);
        courses.forget_unused(now + KEPT);
        assert_eq!(courses.courses.keys().collect::<Vec<_>>(), ["b"]);
    }
}
