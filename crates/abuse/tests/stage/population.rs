//! A fleet of 100,000 users in 1,000 tenants over seven days: who is honest, and who was planted. Everything comes from one seed.

use tollgate_core::decide::signal::{KeyKind, PointKind, SubjectKey, VolumeKind};

use super::fixture::*;

pub const USERS: u64 = 100_000;
pub const TENANTS: u64 = 1_000;
pub const DAYS: i64 = 7;
pub const SOURCES: u64 = 4;
/// The minute of the provider's wave: the afternoon of the fifth day.
pub const WAVE: i64 = START + 4 * DAY + 14 * HOUR;
/// How many users the wave hits.
pub const WAVE_USERS: u64 = 3_000;
/// As many are active in the hour of the wave.
const WAVE_ACTIVE: u64 = 6_000;

/// A small generator of numbers (splitmix64).
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }

    fn time(&mut self, from_ms: i64, length_ms: i64) -> i64 {
        from_ms + self.below(length_ms as u64) as i64
    }
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    Start,
    Stop,
    /// A denial of a tool, with the call that was denied.
    Denial(usize, u64),
    LoopStop(u64),
    Calls(u64),
}

/// One event of somebody, with the time at which its record is written and the one that it says itself.
#[derive(Debug, Clone)]
pub struct Event {
    pub written_ms: i64,
    pub time_ms: i64,
    pub source: u64,
    pub user: String,
    pub tenant: String,
    pub what: EventKind,
    /// The story that it belongs to.
    pub plant: Option<usize>,
}

/// A story that was planted: which rule should catch whom, and at which of its events; `None` if nobody should be caught.
#[derive(Debug, Clone)]
pub struct Plant {
    pub name: &'static str,
    pub rule: &'static str,
    pub subject: SubjectKey,
    pub caught_at: Option<usize>,
}

#[derive(Default)]
pub struct SeededFleet {
    pub events: Vec<Event>,
    pub plants: Vec<Plant>,
}

impl SeededFleet {
    pub fn of(seed: u64) -> Self {
        let (mut fleet, mut random) = (Self::default(), Random(seed));
        fleet.honest(&mut random);
        fleet.wave(&mut random);
        (0..20).for_each(|n| fleet.offenders(n, &mut random));
        fleet.runaways(&mut random);
        // As they come: the members write once a minute for each source.
        fleet.events.sort_by_key(|event| (event.written_ms.div_euclid(MINUTE), event.source, event.written_ms));
        fleet
    }

    fn add(&mut self, random: &mut Random, time_ms: i64, user: &str, tenant: &str, what: EventKind, plant: Option<usize>) {
        let (source, user, tenant) = (random.below(SOURCES), user.to_owned(), tenant.to_owned());
        self.events.push(Event { written_ms: time_ms, time_ms, source, user, tenant, what, plant });
    }

    /// Everybody now and then, some of whom are stopped once or twice; and a few who are stopped as often as an honest one may be.
    fn honest(&mut self, random: &mut Random) {
        for day in 0..DAYS {
            for _ in 0..USERS / 6 {
                let user = random.below(USERS);
                let (id, tenant) = (format!("u{user}"), format!("t{}", user % TENANTS));
                let at_ms = random.time(START + day * DAY, DAY - 2 * HOUR);
                self.add(random, at_ms, &id, &tenant, EventKind::Start, None);
                for _ in 0..[0, 0, 0, 0, 0, 0, 0, 0, 1, 2][random.below(10) as usize] {
                    let at_ms = random.time(at_ms, HOUR);
                    self.add(random, at_ms, &id, &tenant, EventKind::Stop, None);
                }
                for tool in 0..[0, 0, 0, 0, 0, 0, 0, 1, 2, 2][random.below(10) as usize] {
                    let (at_ms, call) = (random.time(at_ms, HOUR), random.below(1 << 40));
                    self.add(random, at_ms, &id, &tenant, EventKind::Denial(tool, call), None);
                }
            }
            for heavy in 0..50 {
                for n in 0..12 {
                    let at_ms = START + day * DAY + n * 2 * HOUR + random.below(HOUR as u64) as i64;
                    self.add(random, at_ms, &format!("heavy{heavy}"), &format!("heavy-tenant{heavy}"), EventKind::Stop, None);
                }
            }
        }
    }

    /// A provider changes its filter, and within an hour thousands are stopped ten times each.
    fn wave(&mut self, random: &mut Random) {
        for n in 0..WAVE_ACTIVE {
            let (id, tenant) = (format!("u{}", n * 13 % USERS), format!("t{}", n * 13 % USERS % TENANTS));
            let at_ms = random.time(WAVE - 10 * MINUTE, 10 * MINUTE);
            self.add(random, at_ms, &id, &tenant, EventKind::Start, None);
            for _ in 0..if n < WAVE_USERS { 10 } else { 0 } {
                let at_ms = random.time(WAVE, HOUR);
                self.add(random, at_ms, &id, &tenant, EventKind::Stop, None);
            }
        }
    }

    /// Plants a story: events at times after its beginning, of users and tenants of their own.
    fn plant(&mut self, random: &mut Random, plant: Plant, begin_ms: i64, events: &[(i64, String, EventKind)], tenant: &str) {
        self.plants.push(plant);
        let at = self.plants.len() - 1;
        for (after_ms, user, what) in events {
            self.add(random, begin_ms + after_ms, user, tenant, *what, Some(at));
        }
    }

    /// One offender of each kind, and beside each somebody who stays one below.
    fn offenders(&mut self, n: u64, random: &mut Random) {
        let mut begin = || random.below(200) as i64 * 37 * MINUTE % (3 * DAY) + START;
        let begins: Vec<i64> = (0..12).map(|_| begin()).collect();
        let id = |name: &str| format!("{name}{n}");
        let stops = |name: &str, count: i64, step_ms: i64| -> Vec<(i64, String, EventKind)> {
            (0..count).map(|at| (at * step_ms, id(name), EventKind::Stop)).collect()
        };
        let caught = |name, rule, subject, at| Plant { name, rule, subject, caught_at: Some(at) };
        let spared = |name, rule, subject| Plant { name, rule, subject, caught_at: None };
        let (hour, day) = ("safety-stop-user", "safety-stop-user-day");
        self.plant(random, caught("burst", hour, user(&id("burst")), 4), begins[0], &stops("burst", 9, MINUTE), &id("bt"));
        self.plant(random, spared("four at once", hour, user(&id("four"))), begins[1], &stops("four", 4, MINUTE), &id("ft"));
        // Four in every hour, and never five: the rule of the day sees them.
        self.plant(random, caught("drip", day, user(&id("drip")), 14), begins[2], &stops("drip", 40, 15 * MINUTE), &id("dt"));
        self.plant(random, spared("drip, by the hour", hour, user(&id("dry"))), begins[3], &stops("dry", 60, 15 * MINUTE), &id("yt"));
        let slow = stops("slow", 50, DAY / 14 + 1);
        self.plant(random, spared("fourteen a day", day, user(&id("slow"))), begins[4], &slow, &id("st"));
        let rotating = |name: &str, count: i64| -> Vec<_> {
            (0..count).map(|at| (at * 2 * MINUTE, format!("{name}{n}-{at}"), EventKind::Stop)).collect::<Vec<_>>()
        };
        let tenant = |name: &str| subject(KeyKind::Tenant, &id(name));
        let rotation = "safety-stop-rotation";
        self.plant(random, caught("rotation", rotation, tenant("rot"), 19), begins[5], &rotating("r", 20), &id("rot"));
        self.plant(random, spared("nineteen ids", rotation, tenant("few")), begins[6], &rotating("f", 19), &id("few"));
        let tools = |name: &str, tools: &[usize]| -> Vec<_> {
            tools
                .iter()
                .zip(0..)
                .map(|(tool, at)| (at * MINUTE, id(name), EventKind::Denial(*tool, 1 << 50 | n << 20 | at as u64)))
                .collect()
        };
        let probing = "denied-tool-probing";
        self.plant(random, caught("probing", probing, user(&id("probe")), 4), begins[7], &tools("probe", &[0, 1, 1, 2, 3]), &id("pt"));
        self.plant(random, spared("three tools", probing, user(&id("adapt"))), begins[8], &tools("adapt", &[0, 1, 2, 0, 1, 2]), &id("at"));
        let same = |name: &str, count: i64, call: u64| -> Vec<_> {
            (0..count).map(|at| (at * 2 * MINUTE, format!("{name}{n}-{at}"), EventKind::Denial(0, call))).collect::<Vec<_>>()
        };
        let call = |call: u64| subject(KeyKind::Call, &call.to_string());
        let (five, four) = (1 << 52 | n, 1 << 53 | n);
        self.plant(random, caught("injected call", "same-denied-call", call(five), 4), begins[9], &same("i", 5, five), &id("it"));
        self.plant(random, spared("four of one call", "same-denied-call", call(four)), begins[10], &same("j", 4, four), &id("jt"));
        let loops: Vec<_> = (0..10).map(|thread| (thread * MINUTE, id("looper"), EventKind::LoopStop(thread as u64))).collect();
        let agent = subject(KeyKind::Agent, &id("loops"));
        self.plant(random, caught("broken release", "loop-stop-agent", agent, 9), begins[11], &loops, &id("loops"));
        self.forged(n, random);
    }

    /// Somebody whose clock is wrong, by as much as times may be off before the record's own counts.
    fn forged(&mut self, n: u64, random: &mut Random) {
        let name = format!("forged{n}");
        let begin_ms = START + 20 * HOUR + n as i64 * 97 * MINUTE;
        let first = self.events.len();
        let events: Vec<_> = (0..6).map(|at| (at * 3 * MINUTE, name.clone(), EventKind::Stop)).collect();
        let plant = Plant { name: "forged times", rule: "safety-stop-user", subject: user(&name), caught_at: Some(4) };
        self.plant(random, plant, begin_ms, &events, &format!("fo{n}"));
        for event in &mut self.events[first..] {
            event.time_ms += random.below(8 * MINUTE as u64) as i64 - 4 * MINUTE;
        }
    }

    /// Tenants whose calls go up from what is usual: to a little more than eight times, and to a little less.
    fn runaways(&mut self, random: &mut Random) {
        for (n, share) in [(0, 100), (1, 99), (2, 300), (3, 50)] {
            let tenant = format!("tenant-with-agents{n}");
            let plant = Plant {
                name: "runaway",
                rule: "runaway-calls-tenant",
                subject: subject(KeyKind::Tenant, &tenant),
                caught_at: (share >= 100).then_some(0),
            };
            self.plants.push(plant);
            let at = self.plants.len() - 1;
            for minute in 0..DAYS * 24 * 12 {
                let at_ms = START + minute * 5 * MINUTE;
                let is_running_away = minute / 12 / 24 == 5 && minute % (12 * 24) >= 12 * 10 && minute % (12 * 24) < 12 * 13;
                let amount = if is_running_away { 100 * 8 * share / 100 } else { 100 };
                self.add(random, at_ms, "nobody", &tenant, EventKind::Calls(amount), Some(at));
            }
        }
    }
}

/// Returns the volume of what happened, if it is one.
pub fn volume(what: EventKind) -> Option<(VolumeKind, u64)> {
    match what {
        EventKind::Calls(amount) => Some((VolumeKind::Call, amount)),
        _ => None,
    }
}

/// Returns the signals of what happened: its kind, and whom there is a copy for.
pub fn copies(event: &Event) -> Vec<(PointKind, SubjectKey)> {
    let (user, tenant) = (user(&event.user), subject(KeyKind::Tenant, &event.tenant));
    match event.what {
        EventKind::Start => vec![(PointKind::ThreadStart, user)],
        EventKind::Stop => vec![(PointKind::SafetyStop, user), (PointKind::SafetyStop, tenant)],
        EventKind::Denial(_, call) => vec![(PointKind::Denial, user), (PointKind::Denial, subject(KeyKind::Call, &call.to_string()))],
        EventKind::LoopStop(_) => vec![(PointKind::LoopStop, subject(KeyKind::Agent, &event.tenant))],
        EventKind::Calls(_) => Vec::new(),
    }
}
