//! What must hold after any sequence of observations.

use super::world::{TARGET, World};
use super::*;
use crate::bgd::mapping::GreenAddress;
use proptest::prelude::*;
use std::collections::BTreeSet;

#[derive(Debug, Clone)]
enum Event {
    Status(&'static str),
    OtherTarget(&'static str),
    Unclassified,
    Empty,
    Absent,
    Present,
    Vanished,
    Failure,
    Refresh(bool, u32),
    Reload,
    NamesVanish,
    NamesReturn,
    /// Names lead elsewhere from now on.
    NamesMove(u8),
    /// A look-up that nobody waits for any more is answered.
    LateAnswer(u8),
    TimePasses,
    /// The worker ends, and another one starts.
    Exit,
}

fn status() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        3 => Just("AVAILABLE"),
        3 => Just("SWITCHOVER_INITIATED"),
        3 => Just("SWITCHOVER_IN_PROGRESS"),
        3 => Just("SWITCHOVER_IN_POST_PROCESSING"),
        3 => Just("SWITCHOVER_COMPLETED"),
        1 => Just("SOMETHING_ELSE"),
        1 => Just(""),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => status().prop_map(Event::Status),
        2 => status().prop_map(Event::OtherTarget),
        1 => Just(Event::Unclassified),
        1 => Just(Event::Empty),
        1 => Just(Event::Absent),
        1 => Just(Event::Present),
        1 => Just(Event::Vanished),
        3 => Just(Event::Failure),
        2 => (any::<bool>(), 20u32..22).prop_map(|(also, reader)| Event::Refresh(also, reader)),
        2 => Just(Event::Reload),
        1 => Just(Event::NamesVanish),
        2 => Just(Event::NamesReturn),
        1 => any::<u8>().prop_map(Event::NamesMove),
        1 => any::<u8>().prop_map(Event::LateAnswer),
        1 => Just(Event::TimePasses),
        1 => Just(Event::Exit),
    ]
}

fn apply(world: &mut World, event: &Event) -> Vec<Action> {
    match event {
        Event::Status(status) => world.status(status),
        Event::OtherTarget(status) => world.target("db-green-2.x", status),
        Event::Unclassified => world.topology(Topology::Unclassified),
        Event::Empty => world.topology(Topology::Empty),
        Event::Absent => world.see(Observation::TableAbsent),
        Event::Present => world.see(Observation::TablePresent),
        Event::Vanished => world.see(Observation::Vanished),
        Event::Failure => world.see(Observation::Failure),
        Event::Refresh(also_reader, reader) => world.refresh(|row| {
            row.writer_is_also_reader = *also_reader;
            row.reader_hostgroup = *reader;
        }),
        Event::Reload => world.reload(),
        Event::NamesVanish => {
            world.names.clear();
            Vec::new()
        }
        Event::NamesReturn => {
            world.names = World::new().names;
            Vec::new()
        }
        Event::NamesMove(to) => {
            world.names.values_mut().for_each(|address| *address = [127, 10, 1, *to].into());
            Vec::new()
        }
        Event::LateAnswer(from) => {
            let valid_until = world.now + Duration::from_secs(300);
            let address = GreenAddress { ip: [127, 10, 2, *from].into(), valid_until };
            world.see(Observation::Resolved(vec![Resolution { host: Arc::from(TARGET), address }]))
        }
        Event::TimePasses => {
            world.now += Duration::from_secs(400);
            Vec::new()
        }
        Event::Exit => {
            let actions = world.see(Observation::Exit);
            world.machine = Machine::new(world.machine.row().clone());
            actions
        }
    }
}

/// The pairs that were drained since they were made.
#[derive(Default)]
struct Drained(BTreeSet<Endpoint>);

impl Drained {
    /// A blue server is drained once, and once more where a rollback ends its pin. Green ones are not drained by themselves.
    fn follow(&mut self, event: &Event, actions: &[Action]) -> Result<(), TestCaseError> {
        let mut released = BTreeSet::new();
        for action in actions {
            match action {
                Action::PurgeProbes(endpoint) => {
                    released.insert(endpoint);
                }
                Action::Drain(endpoint) => {
                    prop_assert!(!endpoint.host.contains("-green-"), "{endpoint} is green");
                    let first = match released.contains(endpoint) {
                        true => self.0.remove(endpoint),
                        false => self.0.insert(endpoint.clone()),
                    };
                    prop_assert!(first, "{endpoint} is drained without need after {event:?}");
                }
                _ => {}
            }
        }
        // Three failures take the pins away and leave the pairs.
        if !matches!(event, Event::Failure) {
            self.0.retain(|endpoint| !released.contains(endpoint));
        }
        Ok(())
    }
}

/// NONE reached in these ways keeps effects (contract: "Backward And Unrecognized Phases").
fn unclassified(event: &Event) -> bool {
    matches!(event, Event::Unclassified | Event::Status("") | Event::OtherTarget(""))
}

proptest! {
    // Many, for they are cheap and the order of events is what matters.
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn invariants_hold(events in prop::collection::vec(event(), 1..30)) {
        let mut world = World::new();
        let mut kept_effects = false;
        let mut drained = Drained::default();
        for event in &events {
            let before = world.status;
            let green = world.green_drained;
            let actions = apply(&mut world, event);
            prop_assert_eq!(world.machine.status, world.status, "every state is published: {:?}", event);
            prop_assert!(
                !matches!(world.status, BgdStatus::WriterSwitchoverCompleted | BgdStatus::SwitchoverCompleted)
            );
            kept_effects |= unclassified(event);
            if world.status != BgdStatus::None {
                kept_effects = false;
            } else if !kept_effects {
                prop_assert!(world.owns_nothing(), "left over after {:?}", event);
            }
            if let Some(map) = &world.machine.map {
                prop_assert!(map.writer().is_some(), "no writer in the map after {:?}", event);
            }
            let suppressing = world.status >= BgdStatus::WriterSwitchoverInitiated;
            let late = before == BgdStatus::None || before == BgdStatus::Available;
            if world.status == BgdStatus::WriterSwitchoverInProgress {
                let mapped = world.machine.map.as_ref().is_some_and(|map| map.writer().is_some());
                prop_assert!(!world.demoted.is_empty() || !mapped, "the blue writer is back after {:?}", event);
            }
            if suppressing && !(late || world.status == BgdStatus::ReaderSwitchoverInProgress) {
                prop_assert!(!world.suppressed.is_empty());
            }
            if world.status < BgdStatus::WriterSwitchoverInitiated {
                prop_assert!(world.suppressed.is_empty());
            }
            if world.green_drained > green {
                prop_assert_eq!(before, BgdStatus::ReaderSwitchoverInProgress, "green pools are drained on success alone");
            }
            drained.follow(event, &actions)?;
        }
        world.see(Observation::Exit);
        prop_assert_eq!(world.status, BgdStatus::None);
        prop_assert!(world.owns_nothing());
    }

    /// From any state, the ordinary course of a switchover reaches its end.
    #[test]
    fn a_switchover_completes_after_anything(events in prop::collection::vec(event(), 0..15)) {
        let mut world = World::new();
        for event in &events {
            apply(&mut world, event);
        }
        world.names = World::new().names;
        world.see(Observation::TablePresent);
        world.topology(Topology::Empty);
        for status in ["AVAILABLE", "SWITCHOVER_INITIATED", "SWITCHOVER_IN_PROGRESS", "SWITCHOVER_IN_POST_PROCESSING"] {
            world.target(TARGET, status);
        }
        prop_assert_eq!(world.status, BgdStatus::WriterSwitchoverPostProcessing);
        let probed = world.machine.direct().map(|direct| direct.address.ip());
        prop_assert!(probed.is_some() && world.pins.get("db.x").copied() == probed);
        prop_assert!(world.demoted.is_empty());
        world.status("SWITCHOVER_COMPLETED");
        prop_assert_eq!(world.status, BgdStatus::ReaderSwitchoverInProgress);
        prop_assert!(!world.pins.contains_key("db.x"));
        world.topology(Topology::Empty);
        prop_assert!(world.owns_nothing());
        prop_assert_eq!(world.status, BgdStatus::None);
    }
}
